"""The durable record of tasks, sessions and notices."""
