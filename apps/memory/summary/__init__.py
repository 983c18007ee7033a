"""Figures of a user's memory for its pages: the worker counts them (`counting`) and keeps them in a row (`keeping`)."""
