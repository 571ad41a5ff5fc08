"""One module per event of an agent client."""
