"""The operations on tasks, one per module, and the functions that they share."""
