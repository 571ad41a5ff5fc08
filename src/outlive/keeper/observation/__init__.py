"""The observation of one attempt, as the keeper starts and ends it."""
