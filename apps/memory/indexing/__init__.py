"""Searchable parts of notes and files: the one place that turns rows into documents of the search index."""
