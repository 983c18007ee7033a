from pathlib import Path

import pytest

from .reading import Uploads


@pytest.fixture
def upload(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path)
