"""Adapters of agent clients. Each adapter starts a client and reads its output."""
