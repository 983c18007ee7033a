"""The web as tools: pages read, and searched for. What comes back was written by others and is marked as such."""
