"""What judges said, on disk: one Parquet file for each batch of pictures, written whole before the next is asked about.

A process that is killed loses the batch that it was at; whoever asks for the same word again goes on behind the last
file. Columns: address, psi, round, chance (with which the address was taken), and what :mod:`.answers` keeps.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from ..attributes.schema import Attribute
from ..errors import DataError, OutputError
from ..files import disk_sentence, written_whole
from .answers import Rows, columns_of
from .parquet import read_parquet, write_parquet

__all__ = ["Journal", "Kept"]

ABOUT, NOTES = "word.json", "notes.json"


@dataclass(frozen=True)
class Kept:
    """Everything labelled so far, by index: indices [N], rows [N, columns]."""

    index: NDArray[np.int64]
    rows: Rows


class Journal:
    """A folder of labels for one word of one model by one judge."""

    def __init__(self, folder: Path, attribute: Attribute, seed: int) -> None:
        self.folder, self.attribute, self.seed = folder, attribute, seed

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls, folder: Path, attribute: Attribute, seed: int, about: dict[str, Any], restart: bool = False
    ) -> Iterator[Journal]:
        """The journal of a folder, ours alone while it is open; ``about`` says whose labels these are."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / ".lock", timeout=0):
                if restart:
                    _emptied(folder)
                _check(folder, about)
                yield cls(folder, attribute, seed)
        except Timeout:
            raise OutputError(
                f"Another process is labelling in {folder}; wait for it, or choose a folder with --work."
            ) from None
        except OSError as error:
            raise OutputError(disk_sentence(error, folder)) from error

    def write(self, index: NDArray[np.int64], psi: Any, round_: int, chance: Any, rows: Rows) -> None:
        """Keep what was said of one batch."""
        columns = {
            "address": [f"{self.seed}:{i}" for i in index.tolist()],
            "psi": psi,
            "round": [round_] * len(index),
            "chance": chance,
            **{name: rows[:, k] for k, name in enumerate(columns_of(self.attribute))},
        }
        write_parquet(self.folder / f"labels-{int(index[0]):012d}.parquet", columns)

    def read(self) -> Kept:
        """All labels, in the order of their indices."""
        names = columns_of(self.attribute)
        index: list[int] = []
        rows: list[list[float]] = []
        for path in sorted(self.folder.glob("labels-*.parquet")):
            part = read_parquet(path)
            if not {"address", *names} <= part.keys():
                raise DataError(f"{path} holds other labels than '{self.attribute.name}' needs; remove it.")
            index += [int(address.partition(":")[2]) for address in part["address"]]
            rows += [[np.nan if x is None else x for x in row] for row in zip(*(part[k] for k in names), strict=True)]
        order = np.argsort(np.array(index, dtype=np.int64))
        return Kept(
            np.array(index, dtype=np.int64)[order], np.array(rows, dtype=np.float64).reshape(-1, len(names))[order]
        )

    @property
    def notes(self) -> dict[str, Any]:
        """What judges had to say besides labels."""
        path = self.folder / NOTES
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def note(self, notes: dict[str, Any]) -> None:
        with written_whole(self.folder / NOTES) as beside:
            beside.write_text(json.dumps(notes, indent=1) + "\n", encoding="utf-8")


def _emptied(folder: Path) -> None:
    for pattern in ("labels-*.parquet", "round-*", ABOUT, NOTES):
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _check(folder: Path, about: dict[str, Any]) -> None:
    """Labels of different words, models or judges never mix."""
    path = folder / ABOUT
    if path.exists():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            before = {}
        changed = [key for key in about if not isinstance(before, dict) or before.get(key) != about[key]]
        if changed:
            raise DataError(
                f"{folder} holds labels made with another {' and '.join(changed)}. --restart throws them away; --work "
                "names another folder."
            )
    else:
        with written_whole(path) as beside:
            beside.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
