"""Changes of configuration files that leave all other bytes as they are."""
