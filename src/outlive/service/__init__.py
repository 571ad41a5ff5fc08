"""The operations that the CLI, the SDK, the MCP server and the hooks call."""
