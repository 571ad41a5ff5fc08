"""Adapters of agent clients: one module per client starts and reads it."""
