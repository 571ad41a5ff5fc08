"""The changes that a task made, and other changes during or after its run."""
