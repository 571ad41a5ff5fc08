"""The changes that a command is going to make, predicted from its text by rules."""
