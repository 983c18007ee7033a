"""Izzy remembers by itself: conversations are cut into windows, read by a model, and kept as notes."""
