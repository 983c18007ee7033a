"""Readers of other programs' files, a module each; what they give stands in `apps.memory.transfer.records`."""
