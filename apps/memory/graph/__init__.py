"""A picture of how a user's notes hang together."""
