"""The stages of the benchmark, one per module. Each stage measures one thing."""
