"""The derivation of a task's effects from its journal of system calls."""
