"""Deep memory: one question, looked at from several angles at once.

Expand into keyword sets → search them side by side → merge → follow links one hop → sum up. The fast model expands and
sums up where there is one; without one the sets come from rules and the fragments are handed back ranked.
"""

from .asking import deep_memory
from .fast_model import Asked

__all__ = ["Asked", "deep_memory"]
