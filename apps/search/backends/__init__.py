"""Where passages and their full text are kept. One database so far; another brings a module like `sqlite`."""

from .base import Batch, Head, Ids, Row, Stem
from .sqlite import SQLite

backend = SQLite()

__all__ = ["Batch", "Head", "Ids", "Row", "Stem", "backend"]
