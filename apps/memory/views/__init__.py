"""Pages and HTMX fragments of the memory."""
