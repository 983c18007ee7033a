"""Django's SQLite backend, with writers that take turns."""
