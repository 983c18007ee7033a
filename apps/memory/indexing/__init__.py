"""What of a note or file is searchable: the one place that turns rows into documents of the search index."""
