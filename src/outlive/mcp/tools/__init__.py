"""The tools of the MCP server, one module for each tool."""
