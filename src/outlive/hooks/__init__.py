"""Hooks: what agent clients call at every event of a session. Each client's words are mapped here."""
