"""The output file of a running task: its limit, and its other writers."""
