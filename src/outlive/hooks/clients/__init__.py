"""One module per agent client: its payloads, and the answers that it expects."""
