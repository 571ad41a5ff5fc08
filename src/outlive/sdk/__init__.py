"""The Python SDK, which other programs import."""
