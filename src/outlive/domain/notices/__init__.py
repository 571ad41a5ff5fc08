"""Notices: the sessions that receive them, and their text."""
