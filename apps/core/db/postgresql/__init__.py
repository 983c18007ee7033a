"""Django's PostgreSQL backend, with one writer per user."""
