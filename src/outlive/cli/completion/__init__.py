"""Shell completion: a script per shell, and a function that answers the scripts."""
