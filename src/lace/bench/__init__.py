"""Benches: each measures, writes JSON and a table, and draws a figure from what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["BENCHES", "model_for", "run"]

BENCHES = (
    *("cifar10", "ffhq-conditional", "ffhq-editing", "ffhq-logic", "ffhq-zeroshot"),
    *("frontier", "grid", "spaces", "speed", "temperature"),
)

# The largest a page of pictures may be.
PAGE = (1400, 10_000)


def model_for(name: str) -> str:
    """The model that a bench is about, where nobody names one."""
    return name if name == "cifar10" else "ffhq"


def run(name: str, model: Model, folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Measure, and give the paths of what is written: JSON, table and figure."""
    from ..sheet import save_picture
    from .figures import panels, save
    from .record import Record, machine

    # Before the work: a figure that cannot be drawn is known at once.
    panels(1)
    bench = import_module(f".{name.replace('-', '_')}", __name__)
    found = bench.measure(model, quick, say)
    settings = {"quick": quick, "model": model.name, "psi": getattr(model.generator, "psi", None)}
    record = Record(name, bench.ABOUT, settings, machine(model.device), found.tables)
    if name == "speed":
        record = record.beside(folder, "authors")
    figure, page = folder / f"{record.slug}.png", folder / f"{record.slug}-pictures.jpg"
    yield from record.write(folder, [figure.name, *([page.name] if found.page else [])])
    yield save(bench.draw(found.tables), figure)
    if found.page:
        # Figures are kept with the code, and should not outweigh it.
        found.page.thumbnail(PAGE)
        save_picture(found.page, page, {})
        yield page
