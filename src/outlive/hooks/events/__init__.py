"""The handlers of hook events, one module for each event of an agent client."""
