"""A page about a conversation: its figures, and the settings that hold in it alone."""
