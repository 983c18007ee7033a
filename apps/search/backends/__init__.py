"""Where passages and their full text are kept. One database so far; another brings a module like `sqlite`."""

from .base import Batch, Head, Ids, OccasionRow, Row, Space, Stem
from .sqlite import SQLite

backend = SQLite()

__all__ = ["Batch", "Head", "Ids", "OccasionRow", "Row", "Space", "Stem", "backend"]
