"""Sandboxes: where tools run. Nothing of a tool runs anywhere else."""
