"""Makes the table of word vectors that proactive recall compares words by: `make encoder`,
`pip install msgpack wordfreq`, then `python scripts/word_table.py`.

Each word is what the encoder all-MiniLM-L6-v2 (Apache License 2.0) makes of it alone, around the mean of all words, in the
directions in which words differ most. The words are the most frequent ones by wordfreq, those of the table of kinds, and those
of the messages that teach concern, without function words.
"""

import gzip
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "izzysite.settings")

from apps.search.proactive.word_table import FOLDER, SIGNIFICANT, WordTable  # noqa: E402
from apps.search.text.analysis import split_words, stop_words  # noqa: E402
from benchmarks._minilm import model  # noqa: E402

LANGUAGE = "en"
DIMENSION = 96
MOST_WORDS = 40_000
SHORTEST = 3
OWN_TEXTS = (
    ROOT / "apps" / "memory" / "occasions" / "kinds" / f"{LANGUAGE}.toml",
    ROOT / "apps" / "search" / "proactive" / "messages" / f"{LANGUAGE}.json",
)


def vocabulary() -> list[str]:
    """The words of the table, each once, in the order of the alphabet."""
    words = set(frequent_words())
    for path in OWN_TEXTS:
        words.update(split_words(path.read_text(encoding="utf-8")))
    return sorted(
        word
        for word in words - stop_words(LANGUAGE)
        if len(word) >= SHORTEST and word.isascii() and word.isalpha() and word == word.casefold()
    )


def frequent_words() -> list[str]:
    """The most frequent words by wordfreq, whose file lists words of the same frequency together, the most frequent first."""
    spec = find_spec("wordfreq")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The list of words is not installed: pip install msgpack wordfreq")
    path = Path(spec.submodule_search_locations[0]) / "data" / f"large_{LANGUAGE}.msgpack.gz"
    _, *lists = import_module("msgpack").unpackb(gzip.decompress(path.read_bytes()))
    return [word for each in lists for word in each][:MOST_WORDS]


def main() -> None:
    words = vocabulary()
    vectors = model().embed(words).astype(np.float64)
    vectors -= vectors.mean(axis=0)
    values, directions = np.linalg.eigh(vectors.T @ vectors)
    vectors = vectors @ directions[:, np.argsort(-values)[:DIMENSION]]
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    small = np.round(vectors / largest * SIGNIFICANT).astype(np.int8)
    WordTable(words, small).save(FOLDER / f"{LANGUAGE}.npz")
    print(f"{len(words)} words")


if __name__ == "__main__":
    main()
