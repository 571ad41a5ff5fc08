"""Values that hooks store between two events, and fast checks of the ledger."""
