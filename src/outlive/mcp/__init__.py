"""The MCP server: the commands of the command line as tools for a model."""
