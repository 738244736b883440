"""The paper's ablation: 81 settings of its flow, 104 of its Langevin walk, and the flow in plain Euler steps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from ..metrics.jury import FEATURES
from ..model import Model
from ..samplers.euler import Euler
from ..samplers.langevin import Langevin
from ..samplers.ode import Ode
from .contest import COLUMNS, Contender, Line, raced, scored
from .figures import COLORS, panels, tidy
from .gallery import Asked, Gallery
from .record import Findings, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ABOUT", "draw", "langevins", "measure", "odes"]

ABOUT = "The paper's samplers over all the settings that it tried, beside the exact ones at every strictness."

WORDS = ("glasses", "gender", "smile")
TOLERANCES = (1e-1, 5e-2, 1e-2, 5e-3, 1e-3, 5e-4, 1e-4, 5e-5, 1e-5)
STEPS = (50, 100, 200, 300, 400, 500, 600, 1000)
ETAS = (0.1, 0.05, 0.01, 0.005, 0.001)
SIGMAS = (0.1, 0.05)


def odes() -> list[Contender]:
    """Every pair of tolerances."""
    pairs = product(TOLERANCES, TOLERANCES)
    return [Contender(f"ode {atol:g} {rtol:g}", {"sampler": Ode(atol, rtol)}) for atol, rtol in pairs]


def langevins() -> list[Contender]:
    """Every number of steps, step size, and noise of 0.1, of 0.05 and of the step size."""
    settings = [(n, eta, sigma) for n in STEPS for eta in ETAS for sigma in dict.fromkeys((*SIGMAS, eta))]
    return [
        Contender(f"langevin {n} {eta:g} {sigma:g}", {"sampler": Langevin(n, eta, sigma)}) for n, eta, sigma in settings
    ]


def eulers() -> list[Contender]:
    """The paper's two step sizes."""
    return [Contender(f"euler {size:g}", {"sampler": Euler(size)}) for size in (1e-2, 1e-3)]


def exact() -> list[Contender]:
    """What they are held against."""
    return [Contender(f"exact {s:g}", {"strictness": s}) for s in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A table for each sampler; a quick run takes every fortieth setting, and all exact ones."""
    n, own, every = (16, 48, 40) if quick else (64, 2048, 1)
    say("the model's own pictures")
    gallery, asked = Gallery.opened(model, own, own), Asked.uniform(model, *WORDS)
    chosen = scored(Contender("chosen by A", {}), gallery.chosen(asked, n), gallery)
    tables = {}
    for title, found in (("ode", odes()), ("langevin", langevins()), ("euler", eulers()), ("exact", exact())):
        lines = [] if title != "exact" else [chosen]
        for contender in found if title == "exact" else found[::every]:
            say(contender.name)
            lines += raced(contender, (asked,), n, gallery)
        note = f"{n} pictures a row; names give {SETTINGS[title]}. FD: {FEATURES}."
        tables[title] = Table(title, COLUMNS, lines, note)
    return Findings(tables)


SETTINGS = {
    "ode": "atol and rtol",
    "langevin": "steps, step size and noise",
    "euler": "the step size",
    "exact": "the strictness",
}


def draw(tables: dict[str, Table]) -> Figure:
    """Every setting as a point: right against near, and right against the work."""
    figure, (near, work) = panels(2)
    for color, (title, table) in zip((COLORS[1], COLORS[2], COLORS[3], COLORS[0]), tables.items(), strict=True):
        lines = [Line.of(row) for row in table.rows]
        tried = [line for line in lines if line.evaluations is not None]
        scatter(near, [(line.distance, line.right_b) for line in tried], color, title)
        scatter(work, [(line.evaluations, line.right_b) for line in tried if line.evaluations], color, title)
        for line in (line for line in lines if line.evaluations is None):
            near.semilogx([line.distance], [line.right_b], "*", color=COLORS[4], label=line.sampler)
    tidy(near, ", ".join(WORDS), "Frechet distance to the model's own", "right by judge B")
    tidy(work, ", ".join(WORDS), "evaluations a latent", "right by judge B")
    return figure


def scatter(axis: Axes, points: list[tuple[float, float]], color: str, label: str) -> None:
    style = "o-" if label == "exact" else "o"
    axis.semilogx([x for x, _ in points], [y for _, y in points], style, color=color, label=label, alpha=0.75)
