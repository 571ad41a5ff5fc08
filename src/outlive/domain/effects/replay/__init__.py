"""The derivation of a task's effects from the record of what the task did.

The record (journal) lists the task's observed system calls, or file events.
"""
