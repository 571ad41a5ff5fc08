"""The derivation of a task's effects from its journal.

The journal is the record of the task's observed system calls, or of file events.
"""
