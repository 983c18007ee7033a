"""Slips of the pen: what a word may have been meant to be."""

from collections.abc import Iterator

LEAST, MOST = 3, 20
"""Letters of the words that are looked at: shorter ones are one edit from anything, longer ones are no names."""
_LATIN = "abcdefghijklmnopqrstuvwxyz"


def one_edit_from(word: str) -> Iterator[str]:
    """The words that differ from this casefolded one by a letter too many, missing, other or changed with the next.

    The first letter stays: there people hardly ever slip. Letters are those of the Latin alphabet and the word's own,
    so at most about 1,100 words; some come more than once.
    """
    if not LEAST <= len(word) <= MOST or not word.isalpha():
        return
    letters = "".join(dict.fromkeys(_LATIN + word))
    for place in range(1, len(word) + 1):
        before, behind = word[:place], word[place:]
        yield from (before + letter + behind for letter in letters)
        if behind:
            yield before + behind[1:]
            yield from (before + letter + behind[1:] for letter in letters)
        if len(behind) > 1:
            yield before + behind[1] + behind[0] + behind[2:]
