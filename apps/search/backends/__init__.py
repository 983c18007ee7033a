"""Where passages and their full text are kept. One database so far; another brings a module like `sqlite`."""

from .base import Backend, Batch, Head, Ids, Row, Stem
from .sqlite import SQLite

backend: Backend = SQLite()

__all__ = ["Backend", "Batch", "Head", "Ids", "Row", "Stem", "backend"]
