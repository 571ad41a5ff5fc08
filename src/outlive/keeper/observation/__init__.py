"""The steps with which a keeper starts and ends the observation of an attempt."""
