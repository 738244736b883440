"""What the figures of all benches share: one look, and files that are written whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError
from ..files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLORS", "marks", "panels", "save", "tidy"]

COLORS = ("#1b6ca8", "#d1495b", "#2e8b57", "#e0a030", "#7a5195", "#5c6370", "#00a1a7", "#9c6644")
INK, FADED, PAGE = "#1c1b1a", "#77736d", "#fbfaf8"
LOOK: Any = {
    "figure.facecolor": PAGE,
    "axes.facecolor": PAGE,
    "axes.edgecolor": FADED,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "both",
    "grid.color": "#e6e3de",
    "grid.linewidth": 0.7,
    "xtick.color": FADED,
    "ytick.color": FADED,
    "font.size": 9.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def panels(count: int, columns: int = 2, width: float = 5.6, height: float = 3.9) -> tuple[Figure, list[Axes]]:
    """A figure with so many axes, row by row."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("A bench draws its figure and", "bench") from error
    rows = -(-count // columns)
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(width * min(columns, count), height * rows), layout="constrained")
        axes = [figure.add_subplot(rows, min(columns, count), k + 1) for k in range(count)]
    return figure, axes


def marks(first: int = 0) -> Iterator[tuple[str, str]]:
    """Colours with a mark each, from the ``first`` colour on: one that comes again comes with another mark."""
    return ((color, mark) for mark in "sD^vP" for color in COLORS[first:])


def tidy(axes: Axes, title: str, x: str, y: str, legend: bool = True, beside: bool = False) -> None:
    """Titles, and a legend where there is something to tell apart: ``beside`` the axes where it would hide that."""
    axes.set_title(title, fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_axisbelow(True)
    if legend:
        place: Any = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {}
        axes.legend(frameon=False, fontsize=8.5, **place)


def save(figure: Figure, path: Path) -> Path:
    """As a PNG."""
    with written_whole(path) as beside:
        figure.savefig(beside, dpi=140)
    return path
