"""Neighbours: the passages of one sitting in their order. A long silence ends a sitting.

A turn is often understood only with those around it ("Which one?" - "The red one."), so ranking spreads what a passage
says over its neighbours. Sittings with a single passage (most notes) have none and cost nothing here.
"""

import numpy as np
from numpy.typing import NDArray

from apps.search.features import Flag

Floats = NDArray[np.float32]

OFFSETS = (-4, -3, -2, -1, 1, 2, 3, 4)
TERM_KERNEL = (0.5, 0.5, 1.0, 1.5, 1.0, 1.0, 0.5, 0.5)
"""Weight of a term in the passage at each offset, beside TERM_SELF for the passage's own."""
TERM_SELF = 3.0
MEANING_KERNEL = (0.0, 0.0, 1.0, 2.0, 2.0, 1.0, 0.0, 0.0)
"""The same for similarity of meaning, beside MEANING_SELF; the sum is divided by the weights of those present."""
MEANING_SELF = 3.0
BEFORE = OFFSETS.index(-1)
SILENCE_SECONDS = 6 * 3600.0

_TERM = np.array(TERM_KERNEL, dtype=np.float32)
_MEANING = np.array(MEANING_KERNEL, dtype=np.float32)


class Neighbours:
    """`table[:, row]` holds the rows at OFFSETS, -1 where there is none. `sitting[row]` numbers the sitting, -1: alone.

    `spread_length[row]` is the number of stems that its kernel reaches, weighted; `meaning_mass[row]` the sum of
    weights of those present. `linked` are the rows that have any neighbour, `linked_sittings` their sittings; `replies`
    the rows that come right after a question, `asked` those questions.
    """

    def __init__(self, capacity: int) -> None:
        self.table = np.full((len(OFFSETS), capacity), -1, dtype=np.int64)
        self.sitting = np.full(capacity, -1, dtype=np.int64)
        self.spread_length = np.zeros(capacity, dtype=np.float32)
        self.meaning_mass = np.full(capacity, MEANING_SELF, dtype=np.float32)
        self.linked = self.linked_sittings = self.replies = self.asked = np.zeros(0, dtype=np.int64)
        self.sitting_lengths = np.zeros(0, dtype=np.float32)
        self._numbers: dict[tuple[int, int], int] = {}

    def grow(self, capacity: int) -> None:
        more = (0, capacity - len(self.sitting))
        self.table = np.pad(self.table, ((0, 0), more), constant_values=-1)
        self.sitting = np.pad(self.sitting, more, constant_values=-1)
        self.spread_length = np.pad(self.spread_length, more)
        self.meaning_mass = np.pad(self.meaning_mass, more, constant_values=MEANING_SELF)

    def link(self, rows: NDArray[np.void], touched: NDArray[np.int64], alive: NDArray[np.bool_]) -> None:
        """Set anew the neighbours in all sittings that `touched` rows belong to; `rows` are all features."""
        self.spread_length[touched] = TERM_SELF * rows["length"][touched]
        members = _members(rows, touched)
        if not len(members):
            return
        self.table[:, members] = -1
        self.sitting[members] = -1
        members = members[alive[members]]
        members = members[np.lexsort((rows["order"][members], rows["session"][members]))]
        groups = self._number(members, rows)
        for distance in range(1, OFFSETS[-1] + 1):
            same = np.flatnonzero(groups[distance:] == groups[:-distance])
            self.table[OFFSETS.index(distance), members[same]] = members[same + distance]
            self.table[OFFSETS.index(-distance), members[same + distance]] = members[same]
        table = self.table[:, members]
        present = table >= 0
        around = np.where(present, rows["length"][table], 0).astype(np.float32)
        self.spread_length[members] = TERM_SELF * rows["length"][members] + _TERM @ around
        self.meaning_mass[members] = MEANING_SELF + _MEANING @ present.astype(np.float32)
        # Spares queries a look-up row by row. A row with neighbours has one right before or after.
        before, after = self.table[BEFORE, : len(rows)], self.table[BEFORE + 1, : len(rows)]
        self.linked = np.flatnonzero((before >= 0) | (after >= 0))
        self.linked_sittings = self.sitting[self.linked]
        follows = np.flatnonzero(before >= 0)
        asks = (rows["flags"][before[follows]] & Flag.QUESTION) > 0
        self.replies = follows[asks]
        self.asked = before[self.replies]

    def _number(self, members: NDArray[np.int64], rows: NDArray[np.void]) -> NDArray[np.int64]:
        """Number the sittings of ordered members; returns, per member, which group of this call it belongs to."""
        session, happened = rows["session"][members], rows["happened"][members]
        opens = np.ones(len(members), dtype=bool)
        opens[1:] = (session[1:] != session[:-1]) | (np.abs(np.diff(happened)) > SILENCE_SECONDS)
        groups = np.cumsum(opens) - 1
        first = np.flatnonzero(opens)
        keys: list[tuple[int, int]] = []  # (session, number of the sitting within it)
        for each in session[first].tolist():
            follows = bool(keys) and keys[-1][0] == each
            keys.append((each, keys[-1][1] + 1 if follows else 0))
        known = self._numbers
        numbers = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int32)
        sizes = np.bincount(groups, minlength=len(first))
        self.sitting[members] = np.where(sizes[groups] > 1, numbers[groups], -1)
        missing = len(known) - len(self.sitting_lengths)
        self.sitting_lengths = np.concatenate([self.sitting_lengths, np.zeros(missing, dtype=np.float32)])
        lengths = np.bincount(groups, weights=rows["length"][members], minlength=len(first))
        self.sitting_lengths[numbers] = np.where(sizes > 1, lengths, 0)
        return np.asarray(groups)

    def spread_meaning(self, similarity: Floats) -> Floats:
        """The similarity of each row blended with its neighbours'; (n,) in and out."""
        if not len(self.linked):
            return similarity
        size = len(similarity)
        padded = np.append(similarity, np.float32(0))
        total = np.float32(MEANING_SELF) * similarity
        for column, weight in enumerate(MEANING_KERNEL):
            if weight:
                total += (
                    np.float32(weight) * padded[self.table[column, :size]]
                )  # -1, nobody, is the zero at the end
        total /= self.meaning_mass[:size]
        return total


def _members(rows: NDArray[np.void], touched: NDArray[np.int64]) -> NDArray[np.int64]:
    """All rows of the sittings of those touched rows that can have company, ascending."""
    part = (rows["order"][touched] & 0xFFFF) > 0
    talked = rows["conversation"][touched] != 0
    social = touched[part | talked]
    if not len(social):
        return np.asarray(social)
    sessions = np.unique(rows["session"][social])
    if len(touched) == len(rows) and talked.all():
        return touched
    if len(sessions) == 1:
        return np.asarray(np.flatnonzero(rows["session"] == sessions[0]))
    return np.asarray(np.flatnonzero(np.isin(rows["session"], sessions)))
