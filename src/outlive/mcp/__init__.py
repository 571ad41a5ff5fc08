"""The MCP server, which offers the commands of the command line as tools."""
