"""The timeline of a user's memory: what was saved, changed and put away, day by day."""
