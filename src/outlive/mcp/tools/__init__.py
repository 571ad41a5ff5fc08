"""One file per tool, each named like the verb that it is."""
