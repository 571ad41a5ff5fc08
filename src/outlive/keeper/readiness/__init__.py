"""Readiness: whether the server that an attempt runs can be used."""
