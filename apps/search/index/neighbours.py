"""Neighbours of a passage: those of one session, in their order; a long silence ends a session.

A turn is often understood only with those around it ("Which one?" - "The red one."), so ranking spreads what a passage
says over its neighbours. How much a neighbour counts depends on how much was said in between, not on the number of
messages: people send one thought in one long message or in four short ones. Sittings with a single passage (most notes) have
no neighbours and cost next to nothing here.
"""

import numpy as np
from numpy.typing import NDArray

from apps.search.features import Flag

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]

REACH = 6
"""Passages before and after that can be neighbours."""
OFFSETS = (*range(-REACH, 0), *range(1, REACH + 1))
OWN, NEAR = 3.0, 1.5
"""Weights of the passage itself, and a neighbour that is right beside it."""
FAR = 80.0
"""Stems from the edge of a passage to the middle of a neighbour that counts no more; between, it falls evenly."""
FALL = 0.8
"""With each message that stands between, a reply answers a question by so much."""
SILENCE_SECONDS = 6 * 3600.0
_BEFORE, _AFTER = OFFSETS.index(-1), OFFSETS.index(1)


class Neighbours:
    """`table[:, row]` holds the rows at OFFSETS, -1 where there is none, `weights[:, row]` what each counts.

    `spread_length[row]` is the number of stems that it and its neighbours have, weighted; `mass[row]` the sum of weights.
    `replies` may each answer one of `asked`, of another speaker's turn right before, by `shares`.
    """

    def __init__(self, capacity: int) -> None:
        self.table = np.full((len(OFFSETS), capacity), -1, dtype=np.int64)
        self.weights = np.zeros((len(OFFSETS), capacity), dtype=np.float32)
        self.spread_length = np.zeros(capacity, dtype=np.float32)
        self.mass = np.full(capacity, OWN, dtype=np.float32)
        self.replies = self.asked = np.zeros(0, dtype=np.int64)
        self.shares = np.zeros(0, dtype=np.float32)
        self.linked = False

    def grow(self, capacity: int) -> None:
        more = (0, capacity - len(self.mass))
        self.table = np.pad(self.table, ((0, 0), more), constant_values=-1)
        self.weights = np.pad(self.weights, ((0, 0), more))
        self.spread_length = np.pad(self.spread_length, more)
        self.mass = np.pad(self.mass, more, constant_values=OWN)

    def link(self, rows: NDArray[np.void], touched: Rows, alive: NDArray[np.bool_]) -> None:
        """Set anew the neighbours in all sessions that `touched` rows belong to; `rows` are all features."""
        self.spread_length[touched] = OWN * rows["length"][touched]
        members = _members(rows, touched)
        if not len(members):
            return
        self.table[:, members] = -1
        self.weights[:, members] = 0
        anew = np.zeros(len(rows), dtype=bool)
        anew[members] = True
        kept = ~anew[self.replies]
        pairs = [(self.replies[kept], self.asked[kept], self.shares[kept])]
        members = members[alive[members]]
        members = members[np.lexsort((rows["order"][members], rows["session"][members]))]
        sessions, turns, places = _turns(members, rows)
        lengths = rows["length"][members].astype(np.float64)
        middles = np.cumsum(lengths) - lengths / 2
        asks = (rows["flags"][members] & Flag.QUESTION) > 0
        for distance in range(1, REACH + 1):
            first = np.flatnonzero(sessions[distance:] == sessions[:-distance])
            second = first + distance
            apart = middles[second] - middles[first]
            for near, far, offset in ((first, second, distance), (second, first, -distance)):
                column, gap = OFFSETS.index(offset), np.maximum(apart - lengths[near] / 2, 0)
                self.table[column, members[near]] = members[far]
                self.weights[column, members[near]] = NEAR * np.maximum(1 - gap / FAR, 0)
            answers = (turns[second] - turns[first] == 1) & asks[first]
            first, second = first[answers], second[answers]
            pairs.append((members[second], members[first], FALL ** places[second].astype(np.float32)))
        self.replies, self.asked, self.shares = map(np.concatenate, zip(*pairs, strict=True))
        around = np.where(self.table[:, members] >= 0, rows["length"][self.table[:, members]], 0)
        weights = self.weights[:, members]
        self.spread_length[members] = OWN * lengths + (weights * around).sum(axis=0)
        self.mass[members] = OWN + weights.sum(axis=0)
        self.linked = self.linked or bool((self.table[[_BEFORE, _AFTER]][:, members] >= 0).any())

    def spread(self, values: Floats) -> Floats:
        """A value of each row blended with its neighbours'; (n,) in and out."""
        if not self.linked:
            return values
        size = len(values)
        padded = np.append(values, np.float32(0))  # -1, nobody, is the zero at the end
        total = np.float32(OWN) * values
        for column, weights in zip(self.table, self.weights, strict=True):
            total += weights[:size] * padded[column[:size]]
        total /= self.mass[:size]
        return total

    def reach(self, found: Rows, size: int) -> Floats | None:
        """How much of a term each of `size` rows has, its neighbours' share included, where `found` rows have it.

        None where they have no neighbours: then it is OWN for each of them.
        """
        table = self.table[:, found]
        if not (table >= 0).any():
            return None
        reached = np.zeros(size + 1, dtype=np.float32)  # the last place takes what has no neighbour
        reached[found] = OWN
        for column, weights in enumerate(self.weights):
            rows = table[len(OFFSETS) - 1 - column]
            reached[rows] += weights[rows]
        return reached[:-1]


def _turns(members: Rows, rows: NDArray[np.void]) -> tuple[Rows, Rows, Rows]:
    """For ordered members the number of their session, that of their turn, and their place in the turn.

    A turn is what one speaker says without another in between; who is not named begins a new one each time.
    """
    each = rows[["session", "happened", "first_name", "last_name"]][members]
    opens, changes = np.ones((2, len(members)), dtype=bool)
    opens[1:] = each["session"][1:] != each["session"][:-1]
    opens[1:] |= np.abs(np.diff(each["happened"])) > SILENCE_SECONDS
    changes[1:] = opens[1:] | (each["first_name"][1:] == 0)
    for name in ("first_name", "last_name"):
        changes[1:] |= each[name][1:] != each[name][:-1]
    turns = np.cumsum(changes) - 1
    begins = np.flatnonzero(changes)
    return np.cumsum(opens) - 1, turns, np.arange(len(members)) - begins[turns]


def _members(rows: NDArray[np.void], touched: Rows) -> Rows:
    """All rows of the sessions of those touched rows that can have neighbours, ascending."""
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
