"""Git repositories, read from their files without running git."""
