"""Tasks and their attempts: states, endings, retries and the queue."""
