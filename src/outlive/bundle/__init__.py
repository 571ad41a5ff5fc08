"""The files and locks of one task, in its bundle, without the ledger."""
