"""Completion scripts, one file per shell, each made from the one table of commands."""
