"""Installing into agent clients: their configuration, edited as text, and given back as it was."""
