"""Runs the turns of conversations as tasks of this process's event loop."""
