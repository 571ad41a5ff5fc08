"""The MCP server: the verbs of the command line as tools for a model."""
