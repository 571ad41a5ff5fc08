"""Functions that wake an idle session when one of its tasks has ended."""
