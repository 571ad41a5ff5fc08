"""Observed system calls: what each call changes, and how it is allowed."""
