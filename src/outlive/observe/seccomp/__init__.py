"""Observed system calls: what each call changes, and how the call is answered."""
