"""Text that is sanitized, masked and shortened for people and models."""
