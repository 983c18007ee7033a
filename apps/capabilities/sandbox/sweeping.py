"""Clears away in the background folders of processes that are gone, and requirements that nobody uses any more."""

import logging
from uuid import UUID

from django.conf import settings

from .bubblewrap.prepared import CannotPrepare, prepare
from .layers.store import layers_forget, remove_outdated, remove_unused
from .store import remove_abandoned

logger = logging.getLogger(__name__)


def sweep() -> None:
    from .layers.installing import readable_uv  # here: it loads the proxy, which most commands do without

    try:
        prepared = prepare()
    except CannotPrepare:
        return  # there are no local sandboxes
    abandoned = remove_abandoned(prepared.identity)
    unused = remove_unused(prepared, days=settings.IZZY_LAYER_DAYS)
    remove_outdated(prepared, keep=readable_uv(prepared), days=settings.IZZY_LAYER_DAYS)
    if abandoned or unused:
        logger.info("sandboxes: removed %s abandoned folders, %s unused requirements", abandoned, unused)


def user_forget(user_id: UUID) -> int:
    """Remove the requirements that a user's tools had installed; returns how many sets there were."""
    try:
        return layers_forget(user_id, prepare())
    except CannotPrepare:
        return 0
