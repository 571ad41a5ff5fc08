"""Agent sessions, and the commands and child sessions that clients run themselves."""
