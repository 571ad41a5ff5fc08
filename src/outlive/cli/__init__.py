"""The command line, which parses a command, calls the service, and prints results."""
