"""The adapters of agent clients. Each one starts a client and reads its output."""
