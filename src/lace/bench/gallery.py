"""What benches that judge pictures share: combinations of classes to ask for, and drawings of them with a verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..attributes.schema import Discrete, Schema
from ..generators.base import Generator
from ..metrics.frechet import Moments, frechet_distance, moments
from ..metrics.jury import Jury, Verdict
from ..model import Model

__all__ = ["FOLDER", "WORKERS", "Asked", "Gallery", "Wall", "drawn", "judged", "own_latents"]

# The judges lie in the checkout, not in the package: those of any model, and those of faces.
JUDGES = "recipes/{}/judges"
FOLDER = Path(JUDGES.format("ffhq"))
BATCH = 16
# Processes for the judges that run on a CPU, where there are many pictures.
WORKERS = 12


@dataclass(frozen=True)
class Asked:
    """Words with a class for each, in every combination; ``shares`` says how often a combination is asked for.

    A number takes part as a word whose classes are values of it.
    """

    words: tuple[Discrete, ...]
    shares: Tensor

    @classmethod
    def uniform(cls, model: Model, *names: str, **numbers: Iterable[float]) -> Asked:
        """Every combination as often as any other; of ``numbers`` these values."""
        words = [word for name in names if isinstance(word := model.schema[name], Discrete)]
        words += [Discrete(name, tuple(f"{value:g}" for value in values)) for name, values in numbers.items()]
        count = math.prod(word.columns for word in words)
        return cls(tuple(words), torch.full((count,), 1 / count))

    def as_the_model_draws(self, model: Model) -> Asked:
        """Every combination as often as the model draws it by itself, by its heads."""
        places = [nearest_class(word, model.bank.readings, model.schema) for word in self.words]
        return Asked(self.words, self.counted(places).cpu() / len(places[0]))

    @property
    def is_uniform(self) -> bool:
        return len(self.shares.unique()) == 1

    @property
    def combinations(self) -> list[tuple[str, ...]]:
        """The classes of each combination, in the order of ``shares``."""
        return list(itertools.product(*(word.classes for word in self.words)))

    def sentences(self) -> Iterator[str]:
        """Each combination in words."""
        for classes in self.combinations:
            yield " & ".join(f"{word.name}={name}" for word, name in zip(self.words, classes, strict=True))

    def number(self, classes: list[Tensor]) -> Tensor:
        """The combination that each row is of, from the class of each word."""
        place = torch.zeros_like(classes[0])
        for word, own in zip(self.words, classes, strict=True):
            place = place * len(word.classes) + own
        return place

    def counted(self, classes: list[Tensor]) -> Tensor:
        """How many rows are of each combination."""
        return torch.bincount(self.number(classes), minlength=len(self.shares)).float()

    def counts(self, n: int) -> list[int]:
        """How many of n to draw of each combination."""
        return [round(float(share) * n) for share in self.shares]


def nearest_class(word: Discrete, readings: Tensor, schema: Schema) -> Tensor:
    """The likeliest class of each row of readings, or the nearest value of a number."""
    attribute = schema[word.name]
    if isinstance(attribute, Discrete):
        return readings[:, schema.slice(word.name)].argmax(dim=1)
    values = readings.new_tensor([float(name) for name in word.classes])
    return (schema.natural(readings, attribute)[:, None] - values).abs().argmin(dim=1)


@dataclass(frozen=True)
class Wall:
    """Judged pictures that were asked to show a combination each."""

    asked: Asked
    verdicts: list[Verdict]

    def right(self, judge: str) -> Tensor:
        """Of every picture whether a judge sees all that was asked."""
        found = [self.asked.number([v.classes(word, judge) for word in self.asked.words]) == k for k, v in self._hung]
        return torch.cat(found).float()

    @property
    def features(self) -> Tensor:
        return torch.cat([verdict.features for _, verdict in self._hung])

    @property
    def _hung(self) -> list[tuple[int, Verdict]]:
        return [(k, verdict) for k, verdict in enumerate(self.verdicts) if len(verdict)]


@dataclass(frozen=True)
class Gallery:
    """A model, its jury, and verdicts on what the model draws when nothing is asked: a reference and a pool."""

    model: Model
    jury: Jury
    own: Verdict
    pool: Verdict

    @classmethod
    def opened(cls, model: Model, own: int, pool: int = 0) -> Gallery:
        """Draw ``own`` pictures for the reference and ``pool`` further ones, and have them judged."""
        jury = Jury.load(Path(JUDGES.format(model.name)), model.device)
        verdict = judged(model.generator, jury, own_latents(model, own + pool))
        return cls(model, jury, verdict[:own], verdict[own:])

    def judged(self, w: Tensor) -> Verdict:
        """The verdict on the pictures of w, which are not kept."""
        return judged(self.model.generator, self.jury, w)

    def reference(self, asked: Asked) -> Moments:
        """The model's own pictures, each counted so that combinations have the shares that are asked for."""
        number = asked.number([self.own.classes(word, "labeller") for word in asked.words])
        found = torch.bincount(number, minlength=len(asked.shares)).clamp_min(1)
        return moments(self.own.features, (asked.shares.to(found.device) / found)[number])

    def chosen(self, asked: Asked, n: int) -> Wall:
        """Pictures that the labelling judge itself picks from the model's own: nothing can be nearer or righter."""
        number = asked.number([self.pool.classes(word, "labeller") for word in asked.words])
        rows = [(number == k).nonzero()[:count, 0] for k, count in enumerate(asked.counts(n))]
        return Wall(asked, [self.pool[row] for row in rows])

    def distance(self, wall: Wall) -> float:
        """The Frechet distance of a wall to the model's own pictures."""
        return frechet_distance(moments(wall.features), self.reference(wall.asked))


@torch.inference_mode()
def own_latents(model: Model, n: int) -> Tensor:
    """w of what the model draws when nothing is asked, at addresses that no sampler here gets to."""
    return model.generator.to_w(model.generator.prior(2**63, torch.arange(n, device=model.device)))


@torch.inference_mode()
def judged(generator: Generator, jury: Jury, w: Tensor) -> Verdict:
    """The jury's verdict on pictures that are drawn, judged and forgotten batch by batch."""
    return Verdict.joined(jury(generator.to_picture(rows)) for rows in w.split(jury.batch))


@torch.inference_mode()
def drawn(generator: Generator, w: Tensor) -> Iterator[Tensor]:
    """The pictures of w, batch by batch."""
    for rows in w.split(BATCH):
        yield generator.to_picture(rows).clamp(-1, 1)
