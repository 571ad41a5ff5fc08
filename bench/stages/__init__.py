"""What is measured, one stage per module; each knows the peers only by their protocol."""
