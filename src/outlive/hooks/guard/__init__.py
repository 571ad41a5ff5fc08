"""Advice and warnings that a hook gives before a tool runs."""
