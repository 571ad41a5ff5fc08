"""The Python SDK: what other programs import."""
