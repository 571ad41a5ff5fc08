"""MCP tasks, which two revisions of the protocol have in different forms."""
