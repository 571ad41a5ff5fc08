"""Text for people and models: it is sanitized, masked and shortened."""
