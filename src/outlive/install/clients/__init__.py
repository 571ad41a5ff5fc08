"""One module per agent client: its configuration files and our entries in them."""
