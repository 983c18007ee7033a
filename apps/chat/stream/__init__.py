"""Live delivery: from the process that runs a conversation to everyone who watches it."""
