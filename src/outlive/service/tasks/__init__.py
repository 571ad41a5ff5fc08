"""The operations on tasks, one per module, and what they share."""
