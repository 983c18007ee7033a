"""Warms a web process up in the background once it answers, so that the first message does not wait for it."""

import logging
import time

from django.db import connections

from apps.core.registries import warmups

logger = logging.getLogger(__name__)


def warm_up() -> None:
    for name, warm in warmups:
        begun = time.perf_counter()
        try:
            warm()
        except Exception:  # a part that cannot be loaded now reports itself when it is used
            logger.exception("warm-up of %s failed", name)
        else:
            logger.debug("warm-up of %s took %.2f s", name, time.perf_counter() - begun)
    connections.close_all()
