"""Shell completion: a script for each shell, and the candidates for these scripts."""
