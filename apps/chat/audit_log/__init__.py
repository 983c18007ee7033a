"""The decision log: turn by turn what the model chose to do, how it went, and what it read and wrote."""
