"""File memory: paths under /memories, the texts that its commands answer with, and the commands themselves.

Field names and sentences are those of Anthropic's memory tool (`memory_20250818`), so that a model that was taught
them finds what it expects.
"""
