"""One module for each agent client: its payloads, and the answers that it expects."""
