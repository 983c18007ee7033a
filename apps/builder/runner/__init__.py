"""Runs builds in the worker: an event loop of its own in a thread, several builds at once."""
