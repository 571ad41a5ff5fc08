"""Notices: the inbox, the sinks, and the sessions that learn of a task's end."""
