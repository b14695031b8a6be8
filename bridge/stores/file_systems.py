"""Which file systems a SQLite file cannot be on: those of other machines, whose locks and memory are not shared.

On one of them SQLite seems to work until two machines write. It knows paths alone.
"""

import re
from pathlib import Path
from typing import Final

from bridge.errors import ConfigurationError

__all__ = ["check_file_system"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
_REMOTE: Final = re.compile(
    r"afs|beegfs|ceph|cifs|coda|fuse\.(ceph|glusterfs|s3fs|sshfs)|glusterfs|gpfs|lustre|ncpfs|nfs4?|smb3|smbfs"
)


def check_file_system(path: Path) -> None:
    """Refuse a file on a network file system; where mounts cannot be listed, any file passes.

    Raises:
        ConfigurationError: naming the file system.
    """
    try:
        mounts = _MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return
    found = _kind(path.resolve(), mounts)
    if _REMOTE.fullmatch(found):
        raise ConfigurationError(
            f"{path} is on a network file system ({found}), where SQLite cannot lock: give a path on a local disk, or "
            "use Redis to share state between machines"
        )


def _kind(path: Path, mounts: str) -> str:
    """The kind of the file system that holds `path`: the innermost mount's, and of several there the last one's."""
    longest, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = Path(fields[4].replace("\\040", " "))
        if path.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind = len(point.parts), after.split(" ")[0]
    return kind
