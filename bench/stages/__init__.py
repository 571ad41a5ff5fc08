"""The stages of the benchmark, one per module. They use only the peers' protocol."""
