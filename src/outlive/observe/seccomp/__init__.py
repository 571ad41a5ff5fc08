"""System calls: which ones are observed, what they change, how they are answered."""
