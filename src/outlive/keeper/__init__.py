"""The detached processes of one attempt: its keeper, and the witness of its exit."""
