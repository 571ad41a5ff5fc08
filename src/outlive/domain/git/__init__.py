"""The state of a git repository before and after a task."""
