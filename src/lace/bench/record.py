"""What a bench found: tables of numbers with the machine that they were measured on, as JSON and as Markdown."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..files import written_whole
from ..report import versions

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Cell", "Findings", "Record", "Table", "machine"]

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; the note says how to read them."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""

    def column(self, name: str) -> list[Any]:
        """The cells under one name."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", *([self.note, ""] if self.note else [])]
        lines += ["| " + " | ".join(self.columns) + " |", "|---" * len(self.columns) + "|"]
        return "\n".join(lines + ["| " + " | ".join(shown(cell) for cell in row) + " |" for row in self.rows])


@dataclass(frozen=True)
class Findings:
    """What a bench found: tables by name, and a page of the pictures that they are about, if people should see them."""

    tables: dict[str, Table]
    page: Image | None = None


@dataclass(frozen=True)
class Record:
    """One run of a bench."""

    bench: str
    about: str
    settings: dict[str, Any]
    machine: dict[str, Any]
    tables: dict[str, Table]

    @property
    def slug(self) -> str:
        """The name of its files: what ran, how, and where."""
        return f"{self.bench}-{'quick-' if self.settings['quick'] else ''}{self.place}"

    @property
    def place(self) -> str:
        """The device as names of files have it."""
        return str(self.machine["device"]).lower().replace(" ", "-")

    def beside(self, folder: Path, other: str) -> Record:
        """This record with the tables of another, if ``folder`` holds one from the same device.

        Figures that no command of ours can measure again, such as those of code that is not ours, are written down once
        and stay beside those that are measured anew.
        """
        path = folder / f"{other}-{self.place}.json"
        if not path.exists():
            return self
        tables = json.loads(path.read_text(encoding="utf-8"))["tables"]
        kept = {
            name: Table(table["title"], tuple(table["columns"]), [tuple(row) for row in table["rows"]], table["note"])
            for name, table in tables.items()
        }
        return replace(self, tables={**self.tables, **kept})

    def markdown(self, pictures: Sequence[str]) -> str:
        where = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        how = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        parts = [
            f"# {self.bench}",
            self.about,
            f"Measured on: {where}. Settings: {how}.",
            *(f"![{self.bench}]({picture})" for picture in pictures),
        ]
        return "\n\n".join(parts + [table.markdown() for table in self.tables.values()]) + "\n"

    def write(self, folder: Path, pictures: Sequence[str]) -> Iterator[Path]:
        """The JSON and the Markdown, which shows pictures by name; gives their paths as they are written."""
        texts = {".json": json.dumps(asdict(self), indent=1) + "\n", ".md": self.markdown(pictures)}
        for suffix, text in texts.items():
            path = folder / f"{self.slug}{suffix}"
            with written_whole(path) as beside:
                beside.write_text(text, encoding="utf-8")
            yield path


def shown(cell: Cell) -> str:
    """A cell as people read it: three digits."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.1e}" if cell and abs(cell) < 1e-3 else f"{cell:,.0f}" if abs(cell) >= 999.5 else f"{cell:.3g}"
    return str(cell).replace("|", "\\|")


def machine(device: torch.device) -> dict[str, Any]:
    """The hardware and the software, the commit included where there is one."""
    cpu = f"{cpu_name()}, {torch.get_num_threads()} threads"
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return {"device": name, "processor": cpu, **versions(), "commit": commit()}


def cpu_name() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of the checkout that this code lies in; ``-dirty`` where it has been changed since."""
    command = ["git", "-C", os.fspath(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
