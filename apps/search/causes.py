"""Looks for the words that brought a hit, where the ranking went by vectors and so cannot name them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from apps.search.documents import Causes, Hit
from apps.search.embedders.vocabulary import nearness
from apps.search.text.analysis import detect_language, split_words, stems, stop_words
from apps.search.text.words import CHATTER

MOST_HITS = 20
"""As many of the best are looked at."""
SAID_WORDS = 12
TEXT_WORDS = 30
"""Words of what was said, and of a text, that are compared."""
NAMED_WORDS = 4
NEAR_WORD = 0.4
"""Cosine of two words from which on people see why one made think of the other ("cook", "recipe")."""
NEAR_OCCASION = 0.25
"""The same of a word and a phrase that is known to have brought the note."""


def explained(said: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, the best of them with what brought them: words of `said` that they have, else the pair of words that is
    nearest in meaning, or the word nearest to the occasion."""
    words = content_words(said)[:SAID_WORDS]
    # Those of which nothing is known but numbers, or the occasion without the word that is near it.
    looked_at = [
        hit
        for hit in hits[:MOST_HITS]
        if words and not hit.labels and hit.causes == Causes(occasion=hit.causes.occasion)
    ]
    if not looked_at:
        return list(hits)
    named = dict(zip(map(id, looked_at), _causes(words, looked_at), strict=True))
    return [replace(hit, causes=named[id(hit)]) if id(hit) in named else hit for hit in hits]


def content_words(text: str) -> list[str]:
    """The words of a text that say something, each once."""
    silent = _silent(detect_language(text))
    words = dict.fromkeys(split_words(text))
    return [word for word in words if word not in silent and len(word) > 1 and not word.isdigit()]


@cache
def _silent(language: str) -> frozenset[str]:
    return stop_words(language) | stop_words("en") | CHATTER | {"user", "users"}


def _causes(said: Sequence[str], hits: Sequence[Hit]) -> list[Causes]:
    texts = [content_words(hit.text)[:TEXT_WORDS] for hit in hits]
    others = [
        [hit.causes.occasion] if hit.causes.occasion else text
        for hit, text in zip(hits, texts, strict=True)
    ]
    known = list(dict.fromkeys(word for each in others for word in each))
    near = nearness(said, known)
    column = {word: place for place, word in enumerate(known)}
    found = []
    for hit, other in zip(hits, others, strict=True):
        occasion = hit.causes.occasion
        shared = tuple(_shared(said, content_words(occasion) if occasion else other))[:NAMED_WORDS]
        if occasion and shared:
            found.append(replace(hit.causes, near=shared[0]))
        elif shared or not other:
            found.append(replace(hit.causes, words=shared))
        else:
            cosines = near[:, [column[word] for word in other]]
            row, place = divmod(int(cosines.argmax()), len(other))
            causes = hit.causes
            if cosines[row, place] >= (NEAR_OCCASION if occasion else NEAR_WORD):
                causes = replace(causes, near=said[row], meaning="" if occasion else other[place])
            found.append(causes)
    return found


def _shared(said: Sequence[str], text: Sequence[str]) -> Iterable[str]:
    """The words that a text has too, in whatever form."""
    languages = {"en", detect_language(" ".join([*said, *text]))}
    has = {stem for language in languages for stem in stems(list(text), language)}
    for word in said:
        if not has.isdisjoint(stem for language in languages for stem in stems([word], language)):
            yield word
