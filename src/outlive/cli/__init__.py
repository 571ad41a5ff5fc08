"""The command line: it parses a command, calls the service, and prints the result."""
