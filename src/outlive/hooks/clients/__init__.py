"""One module for each agent client: the client's payloads and the answers to them."""
