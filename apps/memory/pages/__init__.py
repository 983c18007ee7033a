"""Pages of the memory, a module per topic."""
