"""Tools: what the model may call."""
