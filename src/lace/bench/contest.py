"""A contest of samplers: what each draws of the same combinations, judged, in one table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..metrics.bootstrap import interval
from .gallery import Asked, Gallery, Wall
from .record import Cell

if TYPE_CHECKING:
    from ..metrics.jury import Verdict
    from ..planning import Wishes

__all__ = ["COLUMNS", "Contender", "Line", "raced", "scored"]

COLUMNS = (
    *("asked", "shares", "sampler", "strictness", "right by A", "right by B", "low", "high", "FD"),
    *("evaluations a latent", "ms a latent"),
)


@dataclass(frozen=True)
class Contender:
    """A sampler under the name that it has in the table, or a strictness of the exact ones."""

    name: str
    wish: Wishes


class Line(NamedTuple):
    """A line of the table, under the names of COLUMNS."""

    asked: str
    shares: str
    sampler: str
    strictness: float | None
    right_a: float
    right_b: float
    low: float
    high: float
    distance: float
    evaluations: float | None
    milliseconds: float | None

    @classmethod
    def of(cls, row: tuple[Cell, ...]) -> Line:
        return cls(*row)  # type: ignore[arg-type]


def raced(contender: Contender, questions: tuple[Asked, ...], n: int, gallery: Gallery) -> list[Line]:
    """Several questions on the same combinations, from one set of drawings: each takes as many as it needs."""
    needs = [max(each) for each in zip(*(asked.counts(n) for asked in questions), strict=True)]
    verdicts, evaluations, seconds = drawn(contender, questions[0], needs, gallery)
    costs = (evaluations / sum(needs), 1000 * seconds / sum(needs))
    lines = []
    for asked in questions:
        taken = [verdict[:count] for verdict, count in zip(verdicts, asked.counts(n), strict=True)]
        lines.append(scored(contender, Wall(asked, taken), gallery, costs))
    return lines


def drawn(contender: Contender, asked: Asked, needs: list[int], gallery: Gallery) -> tuple[list[Verdict], int, float]:
    """Verdicts on so many pictures of each combination; the evaluations and the seconds that their latents took."""
    verdicts, evaluations, seconds = [], 0, 0.0
    for k, (sentence, count) in enumerate(zip(asked.sentences(), needs, strict=True)):
        start = time.perf_counter()
        # A seed of its own for every combination: draws that one keeps tell nothing of another's.
        drawing = gallery.model.latents(sentence, max(count, 1), seed=1 + k, **contender.wish)
        seconds += time.perf_counter() - start
        evaluations += drawing.info.evaluations if drawing.info else 0
        verdicts.append(gallery.judged(drawing.w)[:count])
    return verdicts, evaluations, seconds


def scored(
    contender: Contender, wall: Wall, gallery: Gallery, costs: tuple[float | None, float | None] = (None, None)
) -> Line:
    """What a wall is worth."""
    a, b = wall.right("labeller"), wall.right("independent")
    question = ", ".join(word.name for word in wall.asked.words)
    shares = "uniform" if wall.asked.is_uniform else "own"
    figures = (float(a.mean()), float(b.mean()), *interval(b, lambda rows: rows.mean(dim=1)), gallery.distance(wall))
    return Line(question, shares, contender.name, contender.wish.get("strictness"), *figures, *costs)
