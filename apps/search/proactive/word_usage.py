"""How much a word says of what a message is about: the more, the fewer of its language's example messages have it.

Counted are stems in the messages that teach concern (some 5,000 in German, Spanish and French each, 32,000 in English): "need"
stands in many whatever they are about, "carafe" in none. What was counted is kept beside the packages, as in English it takes half a
second. Stems stand by their checksums, in ascending order.
"""

import logging
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import Vector
from apps.search.kept import keep, kept_file
from apps.search.proactive.concern import example_messages, examples_sum
from apps.search.text import analysis
from apps.search.text.analysis import split_words, stems

logger = logging.getLogger(__name__)

COMMON = 167
"""A word that so many of EACH messages have says nothing; one that none has says all it can."""
EACH = 5_000


@dataclass(frozen=True, slots=True)
class WordUsage:
    """Of so many messages in a language, how many have a word of each stem."""

    language: str
    forms: NDArray[np.uint32]
    times: NDArray[np.uint32]
    messages: int

    def tells(self, words: Sequence[str]) -> Vector:
        """How much each word says, 0..1, (len(words),)."""
        found = _sums(stems(list(words), self.language))
        places = np.minimum(np.searchsorted(self.forms, found), len(self.forms) - 1)
        times = np.where(self.forms[places] == found, self.times[places], 0)
        shares = 1 - np.log1p(times * (EACH / self.messages)) / math.log1p(COMMON)
        return np.maximum(shares, 0).astype(np.float32)


@cache
def word_usage(language: str) -> WordUsage | None:
    """That of a language, read where it is kept; None where there are no messages in it."""
    sums = zlib.crc32(Path(analysis.__file__).read_bytes(), examples_sum())
    kept = kept_file(f"words-{language}-{zlib.crc32(Path(__file__).read_bytes(), sums):08x}.npz")
    try:
        with np.load(kept) as parts:
            return WordUsage(language, parts["forms"], parts["times"], int(parts["messages"]))
    except FileNotFoundError:
        pass
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        logger.exception("%s cannot be read: how words are used is counted anew", kept.name)
    usage = usage_of(example_messages(language)[0], language)
    if usage is not None:
        parts = {"forms": usage.forms, "times": usage.times, "messages": np.array(usage.messages)}
        try:
            keep(kept, lambda file: np.savez(file, allow_pickle=False, **parts))
        except OSError:
            logger.info("%s cannot be kept: each process counts anew", kept.name)
    return usage


def usage_of(texts: Sequence[str], language: str) -> WordUsage | None:
    """The usage of words in some messages; None without any."""
    having = Counter(form for text in texts for form in set(stems(split_words(text), language)))
    sums = _sums(list(having))
    order = np.argsort(sums, kind="stable")
    times = np.fromiter(having.values(), dtype=np.uint32, count=len(having))
    return WordUsage(language, sums[order], times[order], len(texts)) if having else None


def _sums(forms: Sequence[str]) -> NDArray[np.uint32]:
    return np.array([zlib.crc32(form.encode()) for form in forms], dtype=np.uint32)
