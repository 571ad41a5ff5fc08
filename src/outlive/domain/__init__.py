"""Pure values and decisions, without input, output, a clock or other packages."""
