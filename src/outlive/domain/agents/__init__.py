"""Agent tasks as values: their requests, settings, results and next models."""
