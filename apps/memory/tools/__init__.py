"""What the model may call: notes under two sets of names, links, deep memory, files."""

from .classic import CLASSIC_TOOLS
from .deep import DEEP_TOOLS
from .files import MEMORY_FILES
from .graph import GRAPH_TOOLS
from .notes import NOTE_TOOLS

TOOLS = [*NOTE_TOOLS, MEMORY_FILES, *CLASSIC_TOOLS, *GRAPH_TOOLS, *DEEP_TOOLS]

__all__ = ["TOOLS"]
