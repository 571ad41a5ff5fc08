"""Background agents: launching agents, and reading their answers and transcripts."""
