"""Waking of an idle session when a task has ended."""
