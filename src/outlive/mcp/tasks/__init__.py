"""MCP tasks, in the two revisions of the protocol that have tasks."""
