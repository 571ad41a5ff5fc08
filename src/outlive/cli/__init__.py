"""The command line: parses a command, runs it and prints the result."""
