"""Edits of configuration files that keep every other byte."""
