"""Tools for the model: notes under two sets of names, links, deep memory, files."""
