"""The spawner: a small process that launches tasks for a large program."""
