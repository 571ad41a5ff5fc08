"""Installation into agent clients: edits of their configuration files."""
