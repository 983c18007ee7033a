"""Which rows belong to some documents, told by hashes that mostly differ in their last bits."""

from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from apps.search.features import of_documents, rows_among, uuid_hash

HASHES = st.lists(st.integers(0, 5).map(lambda number: (number % 3) << 16 | number % 2), max_size=30)


@given(HASHES, HASHES)
def test_rows_are_found_as_by_looking_at_each(hashes: list[int], known: list[int]) -> None:
    ascending = np.unique(np.array(known, dtype=np.uint64))
    rows, places = rows_among(np.array(hashes, dtype=np.uint64), ascending)
    assert rows.tolist() == [row for row, value in enumerate(hashes) if value in set(known)]
    assert ascending[places].tolist() == [hashes[row] for row in rows.tolist()]


def test_a_mask_has_the_rows_of_the_documents() -> None:
    ids = [UUID(int=number) for number in range(300)]
    hashes = np.array([uuid_hash(one.bytes) for one in ids], dtype=np.uint64)
    assert np.flatnonzero(of_documents(hashes, {ids[7], ids[260]})).tolist() == [7, 260]
    assert not of_documents(hashes, []).any()
    assert len(of_documents(hashes[:0], ids)) == 0
