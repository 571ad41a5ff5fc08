"""The user's settings: the file, its keys, and the choice of an agent's model."""
