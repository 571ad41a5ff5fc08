"""The spawner: the small process that forks keepers for a large program."""
