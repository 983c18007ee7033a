"""The in-process index of a user's passages, kept fresh by change numbers."""
