"""Walks for several combinations at once: each has a combination of its own, and all share every evaluation.

log p(c_i | z_i) = sum over words of log p(class of i | z_i)  -  sum over numbers of (r(z_i) - value of i)^2 / 2 sigma^2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..baselines.values import asked_values
from ..conditions.energy import SIGMA
from ..samplers.base import Target
from .gallery import Asked

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Crowd"]


class Crowd(Target):
    """So many walks of each combination, one combination after the other."""

    def __init__(self, model: Model, asked: Asked, counts: list[int]) -> None:
        self._model = model
        super().__init__(model.generator.latent_dim, self.unknown, self.unknown, model.device)
        rows = torch.stack([asked_values(model.formula(sentence), model.schema) for sentence in asked.sentences()])
        values = rows.repeat_interleave(torch.tensor(counts), dim=0).to(model.device)
        is_class = torch.tensor([attribute.columns > 1 for attribute in model.schema for _ in range(attribute.columns)])
        self._is_class, self._values = is_class.to(model.device), values.nan_to_num()
        # Of a class only the column of its own counts.
        self._counts = values.isfinite() & ~(self._is_class & (values == 0))

    def log_prob_of(self, z: Tensor, index: Tensor | None) -> Tensor:
        rows = slice(None) if index is None else index
        readings, values = self._model.read(z), self._values[rows]
        of_numbers = (readings - values).square() / (2 * SIGMA**2)
        terms = torch.where(self._is_class, -values * readings, of_numbers)
        return -terms.where(self._counts[rows], 0).sum(dim=1)

    def unknown(self, z: Tensor) -> Tensor:
        """A place alone does not say whose it is."""
        raise NotImplementedError("Only walks know their combination.")
