"""Small files in which hooks store values, and fast checks for new notices."""
