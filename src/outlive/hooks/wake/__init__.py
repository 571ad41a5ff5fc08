"""Waking a session when a task has ended."""
