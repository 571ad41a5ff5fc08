"""The detached processes of one attempt: its keeper and its witness.

The witness records how the command ended.
"""
