"""What a conversation is, at one look, and what holds in it alone."""
