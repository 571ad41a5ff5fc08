"""Sessions: their beginning and end, their hand-off, and the gate."""
