"""Adapters of agent clients: a module per client starts it and reads its output."""
