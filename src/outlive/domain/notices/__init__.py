"""Notices: which sessions they are delivered to, and how their text is written."""
