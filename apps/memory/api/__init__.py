"""REST of the memory, by topic. `shapes` are what it takes and gives."""
