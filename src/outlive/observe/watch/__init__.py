"""File-system events, used where system calls cannot be observed."""
