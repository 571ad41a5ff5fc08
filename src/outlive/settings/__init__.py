"""The user's own settings: the file, its keys, and what follows from them."""
