"""Maintenance of tasks without a keeper, incomplete ledgers, and old records."""
