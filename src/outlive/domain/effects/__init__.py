"""Effects: a task's changes, and changes by others during or after its run."""
