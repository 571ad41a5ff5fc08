"""The derivation of windows and final changes from the journal of system calls."""
