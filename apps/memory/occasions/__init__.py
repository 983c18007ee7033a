"""The occasions of a note: short phrases that say when it matters."""
