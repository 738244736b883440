"""Heads: small classifiers that read attributes from w.

    l^k = MLP_k(w), 512 -> 384 -> 256 -> 128 -> columns, leaky ReLU 0.2          (the paper's network)
    discrete:    log p(c|w) = log mean_k softmax(l^k / T)_c                       T calibrated for each attribute
    continuous:  f(w)       = mean_k l^k                                          scaled to [0, 1]

One network for all attributes, several of them averaged, or one network for each attribute: all are M networks and a
table that says which of them speak for which attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import DataError
from .card import read_with_card, write_with_card
from .schema import Attribute, Continuous, Discrete, Schema

__all__ = ["FunctionHeads", "Heads", "MlpHeads"]

WIDTHS = (384, 256, 128)
SLOPE = 0.2


class Heads(nn.Module):
    """w -> readings [N, columns], as :mod:`lace.attributes.schema` lays them out.

    ``identity`` changes whenever the readings do: what is computed from them is cached under it.
    """

    schema: Schema
    identity: str

    def forward(self, w: Tensor) -> Tensor:
        raise NotImplementedError


class FunctionHeads(Heads):
    """Attributes given as callables of w: class log probabilities [N, C], or numbers [N] in natural units."""

    def __init__(self, readers: Iterable[tuple[Attribute, Callable[[Tensor], Tensor]]], identity: str = "") -> None:
        super().__init__()
        pairs = list(readers)
        self.schema = Schema(attribute for attribute, _ in pairs)
        self.identity = identity
        self._readers = pairs

    def forward(self, w: Tensor) -> Tensor:
        # The empty block is all that a model without words has.
        return torch.cat(
            [w.new_empty(len(w), 0), *(self._read(attribute, fn(w)) for attribute, fn in self._readers)], 1
        )

    @staticmethod
    def _read(attribute: Attribute, value: Tensor) -> Tensor:
        if isinstance(attribute, Discrete):
            return value.log_softmax(dim=1)
        return ((value - attribute.low) / attribute.span)[:, None]


class MlpHeads(Heads):
    """M stacked MLPs; ``speakers`` [M, attributes] says which networks speak for which attribute."""

    speakers: Tensor
    temperature: Tensor

    def __init__(self, schema: Schema, inputs: int, speakers: Tensor, identity: str = "") -> None:
        super().__init__()
        self.schema = schema
        self.identity = identity
        sizes = [inputs, *WIDTHS, schema.columns]
        nets = len(speakers)
        self.weights = nn.ParameterList(torch.empty(nets, a, b) for a, b in pairwise(sizes))
        self.biases = nn.ParameterList(torch.zeros(nets, 1, b) for b in sizes[1:])
        self.register_buffer("speakers", speakers.to(torch.float32))
        self.register_buffer("temperature", torch.ones(len(schema)))

    def initialise(self, generator: torch.Generator) -> MlpHeads:
        """Kaiming's normal start for leaky ReLUs; the last layer starts small."""
        gains = [(2 / (1 + SLOPE**2)) ** 0.5] * len(WIDTHS) + [0.1]
        for weight, gain in zip(self.weights, gains, strict=True):
            weight.data.normal_(0, gain / weight.shape[1] ** 0.5, generator=generator)
        return self

    def logits(self, w: Tensor) -> Tensor:
        """Raw outputs of every network: [M, N, columns]."""
        x = w.to(self.weights[0].dtype).expand(len(self.speakers), *w.shape)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = F.leaky_relu(torch.baddbmm(bias, x, weight), SLOPE)
        return torch.baddbmm(self.biases[-1], x, self.weights[-1])

    def forward(self, w: Tensor) -> Tensor:
        logits = self.logits(w)
        return torch.cat([self._combine(k, a, logits) for k, a in enumerate(self.schema)], dim=1).float()

    def _combine(self, k: int, attribute: Attribute, logits: Tensor) -> Tensor:
        """The readings of one attribute: the mean of the networks that speak for it."""
        own = logits[self.speakers[:, k] > 0][:, :, self.schema.slice(attribute.name)].float()
        if isinstance(attribute, Continuous):
            return own.mean(dim=0)
        return mix(own / self.temperature[k])

    def save(self, path: Path, card: dict[str, Any]) -> None:
        """Write weights in half precision with a card; the schema travels in the card."""
        card = {**card, "schema": self.schema.to_json(), "identity": self.identity}
        write_with_card(path, self.state_dict(), card)

    @classmethod
    def load(cls, path: Path) -> MlpHeads:
        """Read what :meth:`save` wrote."""
        card, state = read_with_card(path)
        try:
            heads = cls(
                Schema.from_json(card["schema"]), state["weights.0"].shape[1], state["speakers"], card["identity"]
            )
            heads.load_state_dict(state)
        except (KeyError, RuntimeError) as error:
            raise DataError(f"{path} does not hold heads of this version ({error}).") from error
        return heads.requires_grad_(False).eval()


def mix(logits: Tensor) -> Tensor:
    """log mean_k softmax(l^k) over the networks in front: [M, N, C] -> [N, C]."""
    log_probs = logits.log_softmax(dim=-1)
    return (log_probs.logsumexp(dim=0) - torch.tensor(float(len(logits))).log()).log_softmax(dim=-1)
