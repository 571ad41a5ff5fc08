"""The detached processes of one attempt: the keeper that owns it and the witness of its exit."""
