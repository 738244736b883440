"""How right and how near: every sampler, and every strictness, between obeying and staying as varied as the model is.

right:  the share of pictures on which a judge sees all that was asked; A labelled what the heads learned from, B had no
        part in it
FD:     the Frechet distance to the model's own pictures of the same combinations, on B's features
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..metrics.bootstrap import interval
from ..metrics.jury import FEATURES, Verdict
from ..model import Model
from .figures import COLORS, panels, tidy
from .gallery import Asked, Gallery, Wall
from .record import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..planning import Wishes

__all__ = ["ABOUT", "Contender", "draw", "measure"]

ABOUT = "How right pictures are and how near they stay to the generator's own, for every sampler and every strictness."

WORDS = (("glasses",), ("glasses", "gender", "smile"))
PAPER = ("ode", "ode-authors", "euler", "euler-authors", "langevin", "langevin-authors", "pc", "pc-authors")
CHAINS = ("smc", "elliptical", "pcnl")
COLUMNS = ("asked", "shares", "sampler", "strictness", "right by A", "right by B", "low", "high", "FD", "ms a latent")


@dataclass(frozen=True)
class Contender:
    """A sampler, or a strictness of the exact ones."""

    name: str
    wish: Wishes

    @property
    def strictness(self) -> float | None:
        return self.wish.get("strictness")


def contenders(quick: bool) -> list[Contender]:
    """The exact ladder of strictness, chains at strictness 0, and the paper's."""
    ladder = (0.0, 0.4, 0.7, 1.0) if quick else tuple(k / 10 for k in range(11))
    others = ("smc", "ode", "langevin", "pc") if quick else (*CHAINS, *PAPER)
    exact = [Contender(f"exact {s:g}", {"strictness": s}) for s in ladder]
    return exact + [Contender(name, {"sampler": name}) for name in others]


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> dict[str, Table]:
    """One table of all contenders on all questions."""
    n, own = (24, 96) if quick else (768, 6144)
    say("the model's own pictures")
    gallery, rows = Gallery(model, own), []
    for words in WORDS:
        uniform = Asked.uniform(model, *words)
        both = (uniform, uniform.as_the_model_draws(model))
        rows += [row(asked, Contender("chosen by A", {}), gallery.chosen(asked, n), gallery, None) for asked in both]
        for contender in contenders(quick):
            say(f"{', '.join(words)}: {contender.name}")
            rows += raced(contender, both, n, gallery)
    note = (
        f"{n} pictures a row. low, high: 95 % of B's figure. FD: {FEATURES}. 'chosen by A': the model's own pictures "
        "as judge A sorts them; nothing can be nearer. shares: uniform asks for every combination as often, own as "
        "often as the model draws it."
    )
    return {"frontier": Table("Right and near", COLUMNS, rows, note)}


def raced(contender: Contender, both: tuple[Asked, Asked], n: int, gallery: Gallery) -> list[tuple[Cell, ...]]:
    """Both questions from one set of drawings: each takes of every combination as many as it needs."""
    needs = [max(pair) for pair in zip(*(asked.counts(n) for asked in both), strict=True)]
    verdicts, spent = drawn(contender, both[0], needs, gallery)
    found = []
    for asked in both:
        taken = [verdict[:count] for verdict, count in zip(verdicts, asked.counts(n), strict=True)]
        found.append(row(asked, contender, Wall(asked, taken), gallery, 1000 * spent / sum(needs)))
    return found


def drawn(contender: Contender, asked: Asked, needs: list[int], gallery: Gallery) -> tuple[list[Verdict], float]:
    """Verdicts on so many pictures of each combination, and the seconds that their latents took."""
    verdicts, spent = [], 0.0
    for k, (sentence, count) in enumerate(zip(asked.sentences(), needs, strict=True)):
        start = time.perf_counter()
        # A seed of its own for every combination: draws that one keeps tell nothing of another's.
        drawing = gallery.model.latents(sentence, max(count, 1), seed=1 + k, **contender.wish)
        spent += time.perf_counter() - start
        verdicts.append(gallery.judged(drawing.w)[:count])
    return verdicts, spent


def row(
    asked: Asked, contender: Contender, wall: Wall, gallery: Gallery, milliseconds: float | None
) -> tuple[Cell, ...]:
    """One line of the table."""
    shares = "uniform" if asked.shares.unique().numel() == 1 else "own"
    a, b = wall.right("labeller"), wall.right("independent")
    low, high = interval(b, lambda rows: rows.mean(dim=1))
    question = ", ".join(word.name for word in asked.words)
    figures = (float(a.mean()), float(b.mean()), low, high, gallery.distance(wall), milliseconds)
    return (question, shares, contender.name, contender.strictness, *figures)


def draw(tables: dict[str, Table]) -> Figure:
    """A panel for each question: near to the left, right at the top."""
    table = tables["frontier"]
    questions = list(dict.fromkeys((row[0], row[1]) for row in table.rows))
    figure, axes = panels(len(questions))
    for axis, question in zip(axes, questions, strict=True):
        frontier(axis, [row for row in table.rows if row[:2] == question])
        shares = "every combination as often" if question[1] == "uniform" else "as the model draws them"
        tidy(axis, f"{question[0]}: {shares}", "Frechet distance to the model's own", "right by judge B")
    return figure


def frontier(axis: Axes, rows: list[tuple[Cell, ...]]) -> None:
    right, far = COLUMNS.index("right by B"), COLUMNS.index("FD")
    exact = [row for row in rows if row[3] is not None]
    axis.semilogx([row[far] for row in exact], [row[right] for row in exact], "o-", color=COLORS[0], label="exact")
    for row in (exact[0], exact[-1]):
        axis.annotate(f"{row[3]:g}", (row[far], row[right]), textcoords="offset points", xytext=(5, -10))
    others = [row for row in rows if row[3] is None]
    for color, row in zip((*COLORS[1:], *COLORS[1:]), others, strict=False):
        marker = "*" if row[2] == "chosen by A" else "^" if row[2] in CHAINS else "s"
        axis.semilogx([row[far]], [row[right]], marker, color=color, label=row[2])
