"""Whether a benchmark has an encoder beside the bundled vectors: `--encoder` asks for the one that comes along."""

import random
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.conf import settings
from django.core.management.base import CommandError

from apps.search.embedders.base import EmbedderMissing
from apps.search.embedders.own import MINILM, OwnEmbedder

AT_ONCE = 500
PATIENCE = 60.0
"""Seconds."""


def add_argument(parser: ArgumentParser) -> None:
    """The option `--encoder` of a benchmark, for `encoder_for` and `side_vectors_make`."""
    parser.add_argument(
        "--encoder",
        action="store_true",
        help="with a real encoder (minilm) beside the bundled vectors",
    )


def side_vectors_make(share: float = 1.0) -> None:
    """Give a share of all passages, drawn at random, their vectors of the encoder in use, if there is one."""
    from apps.search.filling import side_fill
    from apps.search.index import cache
    from apps.search.models import Passage
    from apps.search.spaces import encoder_name

    if not encoder_name():
        return
    side_fill(encoder_name())
    draw = random.Random(1)
    ids = Passage.objects.order_by("id").values_list("id", flat=True)
    bare = [key for key in ids if draw.random() >= share]
    for start in range(0, len(bare), AT_ONCE):
        Passage.objects.filter(id__in=bare[start : start + AT_ONCE]).update(side_vector=None)
    cache.forget()


@contextmanager
def encoder_for(options: dict[str, Any]) -> Iterator[None]:
    """IZZY_EMBEDDER is `minilm` while the block runs, where `--encoder` was given, and is waited for: what is found must not
    depend on how busy the machine is. Raises CommandError where its weights are not installed."""
    from django.test import override_settings

    from apps.search import spaces

    name = settings.IZZY_EMBEDDER
    if options["encoder"]:
        try:
            name = OwnEmbedder(MINILM).name
        except EmbedderMissing as error:
            raise CommandError(error.message) from error
    with override_settings(IZZY_EMBEDDER=name), patch.object(spaces, "ANSWER_SECONDS", PATIENCE):
        yield
