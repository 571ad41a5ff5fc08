"""Background agents: launch them, read their answers and transcripts."""
