"""Reads of the chat."""
