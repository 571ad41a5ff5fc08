"""What a keeper does for an agent besides what it does for every command."""
