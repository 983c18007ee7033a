"""Izzy in the hooks of coding agents: what their hooks run, and putting it into their settings and out again."""
