"""Notices: the inbox, the sinks, and the sessions that are notified of an ending."""
