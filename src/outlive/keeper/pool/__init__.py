"""Idle keepers and witnesses that wait for the next attempt."""
