"""Shell completion: one script per shell, and one function that answers them."""
