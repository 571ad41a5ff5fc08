"""Shell completion: a script for each shell, and a function that answers them."""
