"""The user's settings: the file, its keys, and the models that they choose."""
