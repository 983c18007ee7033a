"""Which rows a search may return."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.documents import Scope
from apps.search.features import SOURCE_CODES, uuid_hash
from apps.search.index.rows import UserRows

Mask = NDArray[np.bool_]


def allowed_rows(rows: UserRows, scope: Scope, *, now: datetime) -> Mask:
    """A new (size,) mask: living rows within the scope, valid at its moment."""
    facts = rows.features[: rows.size]
    mask: Mask = rows.alive[: rows.size].copy()
    if scope.sources is not None:
        mask &= np.isin(facts["source"], [SOURCE_CODES[source] for source in scope.sources])
    if scope.conversation_id is not None:
        mask &= facts["conversation"] == np.uint64(uuid_hash(scope.conversation_id.bytes))
    if scope.only_ids is not None:
        mask &= np.isin(facts["document"], _hashes(scope.only_ids))
    if scope.exclude_ids:
        mask &= ~np.isin(facts["document"], _hashes(scope.exclude_ids))
    moment = (scope.as_of or now).timestamp()
    if scope.as_of is not None:
        mask &= (facts["happened"] <= moment) | np.isfinite(facts["valid_from"])
    if rows.bounded:
        mask &= (facts["valid_from"] <= moment) & (moment < facts["valid_to"])
    return mask


def _hashes(ids: Collection[UUID]) -> NDArray[np.uint64]:
    return np.fromiter((uuid_hash(one.bytes) for one in ids), dtype=np.uint64, count=len(ids))
