"""Text for people and models, which is made harmless, masked and shortened."""
