"""Tasks and their attempts: states, settlements, retries and the queue."""
