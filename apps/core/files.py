"""Files that all hosts need, of capabilities and of imports, in an S3-compatible store (`IZZY_FILES_URL=s3://…`).

Loaded where such a store is set only: `django-storages` and its SDK are an optional part.
"""

import logging
import shutil
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from tempfile import SpooledTemporaryFile
from typing import Any, ParamSpec, TypeVar

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage
from storages.utils import clean_name

from apps.core.errors import Unavailable

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
IN_MEMORY = 1_000_000
CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 5, 20, 3


class StoreFailed(Unavailable, OSError):
    """The store did not answer, or refused. An OSError, as of a disk, to whoever works with files."""

    default_code = "files_unavailable"


def _failing_clearly(method: Callable[P, T]) -> Callable[P, T]:
    """Turns the SDK's errors into StoreFailed."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (BotoCoreError, ClientError) as error:  # their text may name hosts and keys
            logger.warning("the file store failed: %s", type(error).__name__)
            raise StoreFailed("The file store does not answer. Try again in a while.") from error

    return call


class S3Files(S3Storage):  # type: ignore[misc]  # django-storages has no types
    """A bucket, or a part of one. Raises StoreFailed where it does not answer, FileNotFoundError for what is not there."""

    def __init__(self, *, addressing_style: str = "auto", **options: Any) -> None:
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            s3={"addressing_style": addressing_style},
        )
        super().__init__(client_config=config, **options)

    @_failing_clearly
    def _open(self, name: str, mode: str = "rb") -> "File[bytes]":
        """Reads with one request, where the base class needs three. Large files go to the disk."""
        if mode != "rb":
            raise ValueError("Files of the store are read, and saved as a whole.")
        key = self._normalize_name(clean_name(name))
        try:
            body = self.bucket.Object(key).get()["Body"]
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                raise FileNotFoundError(name) from error
            raise
        kept = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  the caller closes it
        with closing(body):
            shutil.copyfileobj(body, kept)
        kept.seek(0)
        return File(kept, name)

    @_failing_clearly
    def _save(self, name: str, content: Any) -> Any:
        return super()._save(name, content)

    @_failing_clearly
    def delete(self, name: str) -> None:
        super().delete(name)

    @_failing_clearly
    def exists(self, name: str) -> Any:
        return super().exists(name)

    @_failing_clearly
    def listdir(self, name: str) -> Any:
        return super().listdir(name)

    @_failing_clearly
    def get_modified_time(self, name: str) -> Any:
        return super().get_modified_time(name)
