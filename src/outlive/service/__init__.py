"""One verb per file: what Outlive does, without any surface."""
