"""Agents as values: what was asked for, how an attempt ended, what comes next."""
