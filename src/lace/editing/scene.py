"""What an edit starts from, and what it has to reach: the same for every method."""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..conditions.formula import And, Formula, leaves
from ..conditions.probability import log_probability
from ..samplers.base import Target
from .subset import layers_of, selected

if TYPE_CHECKING:
    from ..attributes.schema import Schema
    from ..model import Model

__all__ = ["Method", "OwnTarget", "Scene", "Subjects", "standing"]


@dataclass(frozen=True)
class Subjects:
    """n pictures: their z [n, latent_dim], and what is drawn: w [n, dim], or a row for each style [n, styles, dim].

    ``offset`` is what w has that z does not explain, in the shape of what was given: zero for its own draws.
    """

    z: Tensor
    shown: Tensor
    offset: Tensor

    @property
    def w(self) -> Tensor:
        """The w on which they are read: where there is a row for each style, the mean of them."""
        return self.shown if self.shown.dim() == 2 else self.shown.mean(dim=1)


@dataclass(frozen=True)
class Scene:
    """One edit of n pictures: where they are, the sentence of now, those of before, and what to keep.

    ``first`` are the pictures that the first edit started from, and ``kept`` is how those were read.
    """

    model: Model
    first: Subjects
    before: Subjects
    now: Formula
    earlier: tuple[Formula, ...]
    kept: Tensor

    @property
    def schema(self) -> Schema:
        return self.model.schema

    @cached_property
    def sentence(self) -> Formula:
        """All that the picture has to obey: a later sentence about a word takes the place of an earlier one."""
        parts = (*standing(self.earlier, self.now), self.now)
        return And(parts) if len(parts) > 1 else self.now

    @cached_property
    def words(self) -> set[str]:
        """The words that any of the sentences is about."""
        return {leaf.attribute.name for leaf in leaves(self.sentence)}

    def w(self, z: Tensor, index: Tensor) -> Tensor:
        """The w on which pictures ``index`` are read once their latents are z."""
        offset = self.before.offset[index]
        return self.model.generator.to_w(z) + (offset if offset.dim() == 2 else offset.mean(dim=1))

    def log_prob(self, readings: Tensor) -> Tensor:
        """log p(sentence)."""
        return log_probability(self.sentence, readings, self.schema)

    @torch.no_grad()
    def at(self, z: Tensor) -> Subjects:
        """The pictures once they have moved to z, in all their styles."""
        w, offset = self.model.generator.to_w(z), self.before.offset
        return replace(self.before, z=z, shown=w + offset if offset.dim() == 2 else w[:, None] + offset)

    def only_in_subset(self, moved: Subjects) -> Subjects:
        """The pictures moved in those styles alone that the edit is about."""
        shown = selected(self.model.generator, self.before.shown, moved.shown, layers_of(self.now))
        return replace(moved, shown=shown)


class OwnTarget(Target):
    """A condition of its own for each picture of a scene; subclasses write ``log_prob_of``."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.before.z.shape[1], self._all, self._all, scene.before.z.device, is_probability=False)
        self.scene = scene
        self.everyone = torch.arange(len(scene.before.z), device=self.device)

    def rows(self, index: Tensor | None) -> Tensor:
        """Which pictures are meant; all of them where nobody is named."""
        return self.everyone if index is None else index

    def _all(self, z: Tensor) -> Tensor:
        return self.log_prob_of(z, None)


class Method(abc.ABC):
    """A way to edit; its parameters are its attributes."""

    name: str

    @abc.abstractmethod
    def __call__(self, scene: Scene, seed: int) -> Subjects:
        """The pictures after the edit, moved in all their styles: most ways find z and give ``scene.at(z)``."""


def standing(earlier: tuple[Formula, ...], now: Formula) -> tuple[Formula, ...]:
    """The earlier sentences that are about other words than this one."""
    words = {leaf.attribute.name for leaf in leaves(now)}
    return tuple(part for part in earlier if not words & {leaf.attribute.name for leaf in leaves(part)})
