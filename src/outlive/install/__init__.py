"""Installation into agent clients: changes of their configuration files."""
