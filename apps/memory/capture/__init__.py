"""Izzy remembers by itself: what was said is cut into windows, read by a model, and kept as notes."""

from .said import Said

__all__ = ["Said"]
