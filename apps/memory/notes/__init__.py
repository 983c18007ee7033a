"""A user's notes: what they hold, every write to them, their history, and the way back. Services are synchronous, keyword-only,
one transaction each, search index included.

All raise `apps.core.errors`: InvalidInput and TooLarge for what a note cannot hold, NotFound for an id that is unknown,
deleted or somebody else's.
"""
