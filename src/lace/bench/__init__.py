"""Benches: each measures, writes JSON and a table, and draws a figure from what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["BENCHES", "run"]

BENCHES = ("frontier", "grid", "spaces", "speed")


def run(name: str, model: Model, folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Measure, and give the paths of what is written: JSON, table and figure."""
    from .figures import panels, save
    from .record import Record, machine

    # Before the work: a figure that cannot be drawn is known at once.
    panels(1)
    bench = import_module(f".{name}", __name__)
    tables = bench.measure(model, quick, say)
    settings = {"quick": quick, "model": model.name, "psi": getattr(model.generator, "psi", None)}
    record = Record(name, bench.ABOUT, settings, machine(model.device), tables)
    yield from record.write(folder)
    yield save(bench.draw(tables), folder / f"{record.slug}.png")
