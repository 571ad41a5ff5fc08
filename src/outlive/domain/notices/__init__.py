"""Notices: the sessions that receive notices, and the text of notices."""
