"""Pure values and decisions: no input or output, no clock, no import but the language's own."""
