"""Pure values and decisions, without input, output, clock or other packages."""
