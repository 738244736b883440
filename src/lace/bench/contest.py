"""A contest of samplers: what each draws of the same combinations, judged, in one table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ..metrics.bootstrap import interval
from ..samplers.base import Walk
from .crowd import Crowd
from .gallery import Asked, Gallery, Wall
from .record import Cell

if TYPE_CHECKING:
    from ..conditions.formula import Formula
    from ..model import Model
    from ..planning import Wishes

__all__ = ["COLUMNS", "Contender", "Drawn", "Line", "drawn", "needed", "raced", "scored"]

COLUMNS = (
    *("asked", "shares", "sampler", "strictness", "right by A", "right by B", "low", "high", "FD"),
    *("evaluations a latent", "ms a latent"),
)


@dataclass(frozen=True)
class Contender:
    """A sampler under the name that it has in the table, or a strictness of the exact ones."""

    name: str
    wish: Wishes

    def draw(self, model: Model, sentence: str | Formula, n: int, seed: int) -> Drawn:
        """n latents of a sentence."""
        start = time.perf_counter()
        drawing = model.latents(sentence, n, seed=seed, **self.wish)
        seconds = time.perf_counter() - start
        return Drawn(drawing.w, drawing.info.evaluations if drawing.info else 0, seconds)


class Drawn(NamedTuple):
    """Latents w, and what they took."""

    w: Tensor
    evaluations: int
    seconds: float


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
    needs = needed(questions, n)
    found = drawn(contender, questions[0], needs, gallery.model)
    verdicts = [gallery.judged(part.w)[:count] for part, count in zip(found, needs, strict=True)]
    costs = (
        sum(part.evaluations for part in found) / sum(needs),
        1000 * sum(part.seconds for part in found) / sum(needs),
    )
    lines = []
    for asked in questions:
        taken = [verdict[:count] for verdict, count in zip(verdicts, asked.counts(n), strict=True)]
        lines.append(scored(contender, Wall(asked, taken), gallery, costs))
    return lines


def needed(questions: Sequence[Asked], n: int) -> list[int]:
    """How many of each combination serve all questions."""
    return [max(each) for each in zip(*(asked.counts(n) for asked in questions), strict=True)]


def drawn(contender: Contender, asked: Asked, needs: list[int], model: Model) -> list[Drawn]:
    """At least so many latents of each combination, and at least one."""
    counts = [max(count, 1) for count in needs]
    sampler = contender.wish.get("sampler")
    if isinstance(sampler, Walk):
        return together(sampler, asked, counts, model)
    # A seed of its own for every combination: draws that one keeps tell nothing of another's.
    return [
        contender.draw(model, sentence, count, 1 + k)
        for k, (sentence, count) in enumerate(zip(asked.sentences(), counts, strict=True))
    ]


def together(walk: Walk, asked: Asked, counts: list[int], model: Model) -> list[Drawn]:
    """The same by one crowd of walks, whose cost is shared evenly."""
    samples = walk(Crowd(model, asked, counts), sum(counts), 1)
    shares = [count / sum(counts) for count in counts]
    with torch.inference_mode():
        parts = model.generator.to_w(samples.z).split(counts)
    costs = [(round(share * samples.info.evaluations), share * samples.info.seconds) for share in shares]
    return [Drawn(w, *cost) for w, cost in zip(parts, costs, strict=True)]


def scored(
    contender: Contender, wall: Wall, gallery: Gallery, costs: tuple[float | None, float | None] = (None, None)
) -> Line:
    """What a wall is worth."""
    a, b = wall.right("labeller"), wall.right("independent")
    question = ", ".join(word.name for word in wall.asked.words)
    shares = "uniform" if wall.asked.is_uniform else "own"
    figures = (float(a.mean()), float(b.mean()), *interval(b, lambda rows: rows.mean(dim=1)), gallery.distance(wall))
    return Line(question, shares, contender.name, contender.wish.get("strictness"), *figures, *costs)
