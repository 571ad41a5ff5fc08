"""The files and locks of one task in its bundle (the task's directory)."""
