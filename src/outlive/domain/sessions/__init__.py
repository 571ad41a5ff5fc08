"""Agent sessions, the session that each one continues, and clients' own commands."""
