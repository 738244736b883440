"""How right and how near: every sampler, and every strictness, between obeying and staying as varied as the model is.

right:  the share of pictures on which a judge sees all that was asked; A labelled what the heads learned from, B had no
        part in it
FD:     the Frechet distance to the model's own pictures of the same combinations, on B's features
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..metrics.jury import FEATURES
from ..model import Model
from .contest import COLUMNS, Contender, Line, raced, scored
from .figures import COLORS, panels, tidy
from .gallery import Asked, Gallery
from .record import Cell, Findings, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ABOUT", "draw", "measure"]

ABOUT = "How right pictures are and how near they stay to the generator's own, for every sampler and every strictness."

WORDS = (("glasses",), ("glasses", "gender", "smile"))
PAPER = ("ode", "ode-authors", "euler", "euler-authors", "langevin", "langevin-authors", "pc", "pc-authors")
CHAINS = ("smc", "elliptical", "pcnl")
CHOSEN = "chosen by A"
NOTE = (
    f"low, high: 95 % of B's figure. FD: {FEATURES}. '{CHOSEN}': the model's own pictures as judge A sorts them; none "
    "are nearer. shares: uniform asks for every combination alike, own as often as the model draws it."
)


def contenders(quick: bool) -> list[Contender]:
    """The exact ladder of strictness, chains at strictness 0, and the paper's."""
    ladder = (0.0, 0.4, 1.0) if quick else tuple(k / 10 for k in range(11))
    others = ("ode", "langevin", "pc") if quick else (*CHAINS, *PAPER)
    exact = [Contender(f"exact {s:g}", {"strictness": s}) for s in ladder]
    return exact + [Contender(name, {"sampler": name}) for name in others]


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """One table of all contenders on all questions, and one that answers for each of the paper's samplers."""
    n, own = (12, 48) if quick else (320, 2048)
    say("the model's own pictures")
    gallery, lines = Gallery.opened(model, own, own), []
    for words in WORDS:
        uniform = Asked.uniform(model, *words)
        questions = (uniform, uniform.as_the_model_draws(model))
        lines += [scored(Contender(CHOSEN, {}), gallery.chosen(asked, n), gallery) for asked in questions]
        for contender in contenders(quick):
            say(f"{', '.join(words)}: {contender.name}")
            lines += raced(contender, questions, n, gallery)
    tables = {"frontier": Table("Right and near", COLUMNS, lines, f"{n} pictures a row. {NOTE}")}
    return Findings(tables | {"matched": matched(lines)})


def matched(lines: list[Line]) -> Table:
    """Of each of the paper's samplers the strictness at which the exact ones are as right, by both judges, and near."""
    rows: list[tuple[Cell, ...]] = []
    for line in (line for line in lines if line.sampler in PAPER):
        found = [other for other in lines if other.strictness is not None and at_least(other, line)]
        strictness = ", ".join(f"{other.strictness:g}" for other in found) or "none"
        rows.append((line.asked, line.shares, line.sampler, line.right_a, line.right_b, line.distance, strictness))
    count = sum(row[-1] != "none" for row in rows)
    title = f"Some strictness is at least as right and at least as near in {count} of {len(rows)} cases"
    columns = ("asked", "shares", "sampler", "right by A", "right by B", "FD", "strictness as right and as near")
    return Table(title, columns, rows, "As measured: intervals are not counted in anybody's favour.")


def at_least(one: Line, other: Line) -> bool:
    """Whether one is as right and as near as another, on the same question."""
    same = (one.asked, one.shares) == (other.asked, other.shares)
    right = one.right_a >= other.right_a and one.right_b >= other.right_b
    return same and right and one.distance <= other.distance


def draw(tables: dict[str, Table]) -> Figure:
    """A panel for each question: near to the left, right at the top."""
    lines = [Line.of(row) for row in tables["frontier"].rows]
    questions = list(dict.fromkeys((line.asked, line.shares) for line in lines))
    figure, axes = panels(len(questions), width=7.4)
    for axis, question in zip(axes, questions, strict=True):
        frontier(axis, [line for line in lines if (line.asked, line.shares) == question])
        shares = "every combination as often" if question[1] == "uniform" else "as the model draws them"
        tidy(axis, f"{question[0]}: {shares}", "Frechet distance to the model's own", "right by judge B", beside=True)
    return figure


def frontier(axis: Axes, lines: list[Line]) -> None:
    """The exact samplers as one path, all others as points."""
    exact = [line for line in lines if line.strictness is not None]
    path = [line.distance for line in exact], [line.right_b for line in exact]
    axis.plot(*path, "o-", color=COLORS[0], label="exact, by strictness")
    for line in (exact[0], exact[-1]):
        axis.annotate(
            f"{line.strictness:g}", (line.distance, line.right_b), textcoords="offset points", xytext=(5, -10)
        )
    for k, line in enumerate(line for line in lines if line.strictness is None):
        marker = "*" if line.sampler == CHOSEN else "^" if line.sampler in CHAINS else "s"
        color = COLORS[1 + k % (len(COLORS) - 1)]
        axis.plot([line.distance], [line.right_b], marker, color=color, label=line.sampler)
