"""Observation of what a task touches: system calls, snapshots and predictions."""
