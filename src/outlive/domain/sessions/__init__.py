"""Sessions: which one continues which, and commands that clients run themselves."""
