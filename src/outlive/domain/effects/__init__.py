"""Effects: what a task changed, with drift and overlaps, as values."""
