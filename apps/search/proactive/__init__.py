"""Proactive recall: what a person would want to have in mind now, although nobody asked for it."""
