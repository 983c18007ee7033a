"""Folders of conversations on pages and over REST."""
