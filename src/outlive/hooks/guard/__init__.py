"""Advice and warnings before a tool runs."""
