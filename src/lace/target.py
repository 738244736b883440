"""A sentence on a model, as samplers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from .attributes.heads import Heads
from .conditions.energy import energy
from .conditions.formula import Formula, leaves
from .conditions.margin import margin
from .conditions.probability import log_probability
from .gpu.recorded import Recorded
from .samplers.base import Target

if TYPE_CHECKING:
    from .attributes.schema import Schema
    from .model import Model

__all__ = ["SentenceTarget"]

# Where a draw has a chance, half precision stays within a fifth of this.
SLACK = 0.5
# Rows that a draft looks at in one recording: as many as a filter tries at once on a GPU.
MANY_ROWS = 2**16


class Sight(NamedTuple):
    """How latents are read: z -> w -> readings."""

    to_w: Callable[[Tensor], Tensor]
    heads: Heads

    def __call__(self, z: Tensor) -> tuple[Tensor, Schema]:
        return self.heads(self.to_w(z)), self.heads.schema


class SentenceTarget(Target):
    """A formula on a model, in one of its readings; addresses that the bank knows are answered from it."""

    def __init__(self, model: Model, formula: Formula, reading: str = "probability") -> None:
        self._model, self._formula = model, formula
        generator, words = model.generator, {leaf.attribute.name for leaf in leaves(formula)}
        heads = model.heads.only(words)
        is_quick = model.device.type == "cuda" and generator.is_pure and heads.is_pure
        sight = Sight(generator.swift(torch.float32) if is_quick else generator.to_w, heads)
        super().__init__(
            generator.latent_dim,
            log_prob=lambda z: self._log_prob(*sight(z)),
            margin=lambda z: self._margin(*sight(z)),
            device=model.device,
            is_probability=reading == "probability",
        )
        self._value: Callable[[Tensor], tuple[Tensor, ...]] = lambda z: (Target.value(self, z),)
        self._slope: Callable[[Tensor], tuple[Tensor, ...]] = lambda z: Target.slope(self, z)
        if is_quick:
            self._value, self._slope = Recorded(self._value), Recorded(self._slope)
            self.draft = Draft(self, Sight(generator.swift(torch.float16), model.heads.only(words).half()))

    def prior(self, seed: int, index: Tensor) -> Tensor:
        return self._model.generator.prior(seed, index)

    def value(self, z: Tensor, index: Tensor | None = None) -> Tensor:
        return self._value(z)[0]

    def slope(self, z: Tensor, index: Tensor | None = None) -> tuple[Tensor, Tensor]:
        value, slope = self._slope(z)
        return value, slope

    def log_prob_at(self, seed: int, index: Tensor) -> Tensor:
        if self._model.bank.knows(seed, index):
            return self._log_prob(self._model.bank.readings[index], self._model.schema)
        return self.value(self.prior(seed, index))

    def margin_at(self, seed: int, index: Tensor) -> Tensor:
        if self._model.bank.knows(seed, index):
            return self._margin(self._model.bank.readings[index], self._model.schema)
        return super().margin_at(seed, index)

    def _log_prob(self, readings: Tensor, schema: Schema) -> Tensor:
        if self.is_probability:
            return log_probability(self._formula, readings, schema)
        return -energy(self._formula, readings, schema)

    def _margin(self, readings: Tensor, schema: Schema) -> Tensor:
        return margin(self._formula, readings, schema)


class Draft(Target):
    """A sentence by a rougher sight, and SLACK in favour of every draw."""

    def __init__(self, target: SentenceTarget, sight: Sight) -> None:
        value = Recorded(lambda z: (target._log_prob(*sight(z)) + SLACK,), MANY_ROWS)
        super().__init__(
            target.latent_dim,
            log_prob=lambda z: value(z)[0],
            margin=lambda z: target._margin(*sight(z)) + SLACK,
            device=target.device,
            is_probability=target.is_probability,
        )
        self._target = target

    def prior(self, seed: int, index: Tensor) -> Tensor:
        return self._target.prior(seed, index)
