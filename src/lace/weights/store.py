"""The cache folder: things are made in it once, whole, by one process at a time.

``LACE_HOME`` says where it is; without it the platform's own place for caches is taken.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from filelock import FileLock

from ..errors import WeightsError
from ..files import disk_sentence, ordinary_mode

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["cached", "filled", "home", "workshop"]

Network = TypeVar("Network", bound="Module")


def home() -> Path:
    """The cache folder; it need not exist yet."""
    named = os.environ.get("LACE_HOME")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("lace")


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Hold the lock of one cache entry; turn disk errors into sentences."""
    try:
        locks = home() / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        with FileLock(locks / f"{name}.lock"):
            yield
    except OSError as error:
        raise WeightsError(f"{disk_sentence(error, home())} LACE_HOME names the cache folder.") from error


@contextlib.contextmanager
def workshop(name: str) -> Iterator[Path]:
    """An empty folder inside the cache, removed afterwards; what a killed process left there is removed first."""
    folder = home() / f".{name}.partial"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The file or folder ``name`` of the cache; where it is missing, ``make(path)`` builds it beside and it is renamed.

    Two processes that ask at once get the same entry: the second waits for the first.
    """
    entry = home() / name
    if entry.exists():
        return entry
    flat = name.replace("/", "-")
    with _alone(flat):
        if not entry.exists():
            with workshop(flat) as folder:
                make(folder / entry.name)
                if (folder / entry.name).is_file():
                    (folder / entry.name).chmod(ordinary_mode())
                entry.parent.mkdir(parents=True, exist_ok=True)
                (folder / entry.name).replace(entry)
    return entry


def filled(network: Network, name: str, convert: Callable[[Path], None]) -> Network:
    """A network with the state of entry ``name``.safetensors, which ``convert`` writes if this is the first time."""
    from safetensors.torch import load_file

    path = cached(f"{name}.safetensors", convert)
    try:
        network.load_state_dict(load_file(path))
    except Exception as error:
        raise WeightsError(f"{path} is damaged ({error}); delete it and it will be made again.") from error
    return network
