"""Data classes and functions without input, output, a clock or other packages."""
