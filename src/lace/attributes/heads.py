"""Heads: small classifiers that read attributes from w.

    l^k = MLP_k(w), 512 -> 384 -> 256 -> 128 -> columns, leaky ReLU 0.2          (the paper's network)
    discrete:    log p(c|w) = log mean_k softmax(l^k / T)_c                       T calibrated for each attribute
    continuous:  f(w)       = mean_k l^k                                          scaled to [0, 1]

One network for all attributes, several of them averaged, or one network for each attribute: all are M networks and a
table that says which of them speak for which attribute.
"""

from __future__ import annotations

import hashlib
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

__all__ = ["FunctionHeads", "Heads", "JoinedHeads", "MlpHeads"]

WIDTHS = (384, 256, 128)
SLOPE = 0.2


class Heads(nn.Module):
    """w -> readings [N, columns], as :mod:`lace.attributes.schema` lays them out.

    ``identity`` changes whenever the readings do: what is computed from them is cached under it.
    """

    schema: Schema
    identity: str

    @property
    def parts(self) -> tuple[Heads, ...]:
        """The heads whose readings stand side by side in these; other heads are one part."""
        return (self,)

    def forward(self, w: Tensor) -> Tensor:
        raise NotImplementedError


class JoinedHeads(Heads):
    """The words of several heads, in the order of the heads."""

    def __init__(self, heads: Iterable[Heads]) -> None:
        super().__init__()
        self._parts = nn.ModuleList(part for one in heads for part in one.parts if len(part.schema))
        self.schema = Schema(attribute for part in self.parts for attribute in part.schema)
        names = [part.identity for part in self.parts]
        self.identity = hashlib.sha256(" ".join(names).encode()).hexdigest()[:12] if all(names) else ""

    @property
    def parts(self) -> tuple[Heads, ...]:
        return tuple(self._parts)  # type: ignore[arg-type]

    def forward(self, w: Tensor) -> Tensor:
        return torch.cat([w.new_empty(len(w), 0), *(part(w) for part in self.parts)], dim=1)


class FunctionHeads(Heads):
    """Attributes given as callables of w: class log probabilities [N, C], or numbers [N] in natural units."""

    def __init__(self, readers: Iterable[tuple[Attribute, Callable[[Tensor], Tensor]]], identity: str = "") -> None:
        super().__init__()
        pairs = list(readers)
        self.schema = Schema(attribute for attribute, _ in pairs)
        self.identity = identity
        self._readers = pairs

    def forward(self, w: Tensor) -> Tensor:
        read = (self._read(attribute, fn(w)) for attribute, fn in self._readers)
        return torch.cat([w.new_empty(len(w), 0), *read], dim=1)

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

    def signed(self) -> MlpHeads:
        """The same heads, with an identity that changes with any weight as it is stored."""
        digest = hashlib.sha256()
        for name, value in sorted(self.state_dict().items()):
            digest.update(name.encode() + value.half().cpu().numpy().tobytes())
        self.identity = f"heads-{digest.hexdigest()[:12]}"
        return self

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
