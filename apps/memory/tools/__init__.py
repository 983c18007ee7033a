"""What the model may call: notes under two sets of names, links, deep memory, files."""
