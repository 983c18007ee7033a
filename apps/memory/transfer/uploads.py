"""A file that is to be imported."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that is to be imported, as it lies on disk.

    `name` is what its owner called it, "" where the text was `pasted`. A folder comes as a zip.
    """

    path: Path
    name: str = ""
    pasted: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size

    @property
    def suffix(self) -> str:
        """End of the name in lower case, with its dot: `.zip`."""
        return Path(self.name).suffix.lower()

    def head(self, count: int = 4096) -> bytes:
        """The first bytes: enough to tell most formats, at most `count`."""
        with self.path.open("rb") as file:
            return file.read(count)
