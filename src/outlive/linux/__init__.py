"""Linux kernel features that Python's standard library lacks."""
