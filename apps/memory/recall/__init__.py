"""Finding notes: by meaning, by keywords, from several angles, and unasked beside a message."""
