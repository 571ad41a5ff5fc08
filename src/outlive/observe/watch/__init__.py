"""File-system events, used if system calls cannot be observed."""
