"""Files that are written whole or not at all, and errors of the disk said in sentences."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .errors import OutputError

__all__ = ["disk_sentence", "ordinary_mode", "sha256", "writable_folder", "written_whole"]


def disk_sentence(error: OSError, path: Path) -> str:
    """What went wrong on the disk, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"No space is left for {path}; free some, or choose another disk."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{path} may not be written; choose a folder that you own."
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return f"{path} is in the way of a folder or file of that name; choose another."
    return f"{path} cannot be written ({error.strerror or error})."


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write; on success it takes ``path``'s name, on failure it is removed."""
    beside = path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        beside = Path(name)
        yield beside
        beside.chmod(ordinary_mode())
        beside.replace(path)
    except OSError as error:
        raise OutputError(disk_sentence(error, path)) from error
    finally:
        if beside != path:
            beside.unlink(missing_ok=True)


def writable_folder(path: Path) -> Path:
    """Make a folder and try it, before an hour of work depends on it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise OutputError(disk_sentence(error, path)) from error


def ordinary_mode() -> int:
    """The mode of a plain new file (libraries like to make theirs private); the mask can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def sha256(path: Path) -> str:
    """A file's SHA-256, read piece by piece."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
