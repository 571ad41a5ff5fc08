"""Values that hooks store between two events, and fast checks for new notices."""
