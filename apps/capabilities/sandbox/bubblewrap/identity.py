"""As whom sandboxes run: as the server's own user, and where that is root as an unprivileged one."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Identity:
    """`dropped`: the server is root and gives its rights up for the sandbox. bubblewrap run as root would leave /proc/sys
    writable and process limits without effect."""

    uid: int
    gid: int
    dropped: bool

    def may_read(self, path: Path) -> bool:
        """Whether this user gets through every folder above and may read (of a folder: enter) what stands there. Looks at
        owners and modes alone; the probe is what decides."""
        try:
            real = path.resolve(strict=True)
            modes = [(folder.stat(), stat.S_IXOTH) for folder in real.parents]
            found = real.stat()
        except OSError:
            return False
        wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(found.st_mode) else 0)
        return all(self._has(info, bits) for info, bits in [*modes, (found, wanted)])

    def may_enter(self, folder: Path) -> bool:
        """Whether this user gets into the folder, to what lies there under a known name."""
        try:
            real = folder.resolve(strict=True)
            return all(self._has(place.stat(), stat.S_IXOTH) for place in (real, *real.parents))
        except OSError:
            return False

    def _has(self, info: os.stat_result, bits: int) -> bool:
        if info.st_uid == self.uid:
            bits <<= 6
        elif info.st_gid == self.gid:
            bits <<= 3
        return info.st_mode & bits == bits


def sandbox_identity() -> Identity:
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid(), dropped=False)
    return Identity(settings.IZZY_SANDBOX_UID, settings.IZZY_SANDBOX_UID, dropped=True)
