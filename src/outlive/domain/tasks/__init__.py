"""Tasks and attempts: their states, endings, retries and the queue."""
