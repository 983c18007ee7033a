"""Verified deletion: a note or file is taken out of everything Izzy kept of it, and a receipt says so."""

from .selectors import Preview, file_purge_preview, memory_purge_preview
from .services import file_purge, memory_purge

__all__ = ["Preview", "file_purge", "file_purge_preview", "memory_purge", "memory_purge_preview"]
