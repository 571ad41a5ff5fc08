"""The hooks that agent clients call at each event of a session."""
