"""Heads: small classifiers that read attributes from w.

    l^k = MLP_k(w), 512 -> 384 -> 256 -> 128 -> columns, leaky ReLU 0.2          (the paper's network)
    discrete:    log p(c|w) = log mean_k softmax(l^k / T)_c                       T calibrated for each attribute
    continuous:  f(w)       = mean_k l^k                                          scaled to [0, 1]

One network for all attributes, several of them averaged, or one network for each attribute: all are M networks and a
table that says which of them speak for which attribute.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable
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
# With more rows than this a GPU is busy moving numbers, with fewer it waits for calls.
LONG = 2**13


class Heads(nn.Module):
    """w -> readings [N, columns], as :mod:`lace.attributes.schema` lays them out.

    ``identity`` changes whenever the readings do: what is computed from them is cached under it. ``is_pure`` says that
    the same operations run whatever w holds, so that a GPU may record them.
    """

    schema: Schema
    identity: str
    is_pure = False

    @property
    def parts(self) -> tuple[Heads, ...]:
        """The heads whose readings stand side by side in these; other heads are one part."""
        return (self,)

    def only(self, names: Collection[str]) -> Heads:
        """Heads for fewer words, which cost less to read; those who cannot do with less give all that they have."""
        return self

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

    @property
    def is_pure(self) -> bool:  # type: ignore[override]
        return all(part.is_pure for part in self.parts)

    def only(self, names: Collection[str]) -> Heads:
        asked = [part.only(names) for part in self.parts if any(name in part.schema for name in names)]
        return asked[0] if len(asked) == 1 else JoinedHeads(asked)

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
    _place: Tensor
    is_pure = True

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
        self._alike = nn.ModuleList(Alike(schema, members, bool(speakers.all())) for members in alike(schema))
        order = [column for members in alike(schema) for column in columns_of(schema, members)]
        self.register_buffer("_place", torch.tensor(order).argsort(), persistent=False)

    def initialise(self, generator: torch.Generator) -> MlpHeads:
        """Kaiming's normal start for leaky ReLUs; the last layer starts small."""
        gains = [(2 / (1 + SLOPE**2)) ** 0.5] * len(WIDTHS) + [0.1]
        for weight, gain in zip(self.weights, gains, strict=True):
            weight.data.normal_(0, gain / weight.shape[1] ** 0.5, generator=generator)
        return self

    def logits(self, w: Tensor) -> Tensor:
        """Raw outputs of every network: [M, N, columns]."""
        w = w.to(self.weights[0].dtype)
        if w.is_cuda and len(w) > LONG:
            return torch.stack([self._logits_of(k, w) for k in range(len(self.speakers))])
        x = w.expand(len(self.speakers), *w.shape)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = F.leaky_relu_(torch.baddbmm(bias, x, weight), SLOPE)
        return torch.baddbmm(self.biases[-1], x, self.weights[-1])

    def _logits_of(self, k: int, x: Tensor) -> Tensor:
        """One network's: on a GPU a bias rides along with a product, but not with several at once."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = F.leaky_relu_(torch.addmm(bias[k, 0], x, weight[k]), SLOPE)
        return torch.addmm(self.biases[-1][k, 0], x, self.weights[-1][k])

    def forward(self, w: Tensor) -> Tensor:
        logits = self.logits(w)
        read = [group(logits, self.speakers, self.temperature).float() for group in self._alike]
        return read[0] if len(read) == 1 else torch.cat(read, dim=1).index_select(1, self._place)

    def only(self, names: Collection[str]) -> MlpHeads:
        chosen = [k for k, attribute in enumerate(self.schema) if attribute.name in names]
        schema = Schema(self.schema.attributes[k] for k in chosen)
        columns = torch.tensor(columns_of(self.schema, chosen), device=self.speakers.device)
        nets = self.speakers[:, chosen].any(dim=1)
        some = MlpHeads(schema, self.weights[0].shape[1], self.speakers[nets][:, chosen]).to(self.speakers.device)
        state = {
            name: value[nets] for name, value in self.state_dict().items() if name not in ("speakers", "temperature")
        }
        for last in (f"weights.{len(WIDTHS)}", f"biases.{len(WIDTHS)}"):
            state[last] = state[last][..., columns]
        some.load_state_dict({**state, "speakers": some.speakers, "temperature": self.temperature[chosen]})
        return some.requires_grad_(False).eval()

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


def alike(schema: Schema) -> list[list[int]]:
    """Attributes of one kind and as many columns, which are read together."""
    groups: dict[tuple[bool, int], list[int]] = {}
    for k, attribute in enumerate(schema):
        groups.setdefault((isinstance(attribute, Continuous), attribute.columns), []).append(k)
    return list(groups.values())


def columns_of(schema: Schema, members: Iterable[int]) -> list[int]:
    """The columns of some attributes, one after the other."""
    own = (schema.slice(schema.attributes[k].name) for k in members)
    return [column for place in own for column in range(place.start, place.stop)]


class Alike(nn.Module):
    """The readings of ``members``, attributes of one kind and C columns each, at once: a GPU waits for every call."""

    columns: Tensor
    members: Tensor

    def __init__(self, schema: Schema, members: list[int], all_speak: bool) -> None:
        super().__init__()
        self.is_number = isinstance(schema.attributes[members[0]], Continuous)
        self.is_all, self.all_speak = len(members) == len(schema), all_speak
        self.register_buffer("columns", torch.tensor(columns_of(schema, members)), persistent=False)
        self.register_buffer("members", torch.tensor(members), persistent=False)

    def forward(self, logits: Tensor, speakers: Tensor, temperature: Tensor) -> Tensor:
        """Readings [N, members x C] from the outputs [M, N, columns] of all networks."""
        if not self.is_all:
            logits = logits.index_select(2, self.columns)
            speakers, temperature = speakers.index_select(1, self.members), temperature.index_select(0, self.members)
        # [M, N, members, C], and who speaks as [M, 1, members, 1].
        own = logits.float().unflatten(2, (len(self.members), -1))
        speaks = None if self.all_speak else speakers[:, None, :, None]
        if not self.is_number:
            return mix(own / temperature[:, None], speaks).flatten(1)
        mean = own.mean(dim=0) if speaks is None else (own * speaks).sum(dim=0) / speaks.sum(dim=0)
        return mean.flatten(1)


def mix(logits: Tensor, speaks: Tensor | None = None) -> Tensor:
    """log mean_k softmax(l^k) over the networks in front that speak (1, or 0): [M, ..., C] -> [..., C]."""
    log_probs = logits.log_softmax(dim=-1)
    if speaks is None:
        # logsumexp(x) = x_0 - log_softmax(x)_0, in one call where the other takes seven.
        total = log_probs[0] - log_probs.log_softmax(dim=0)[0] - math.log(len(logits))
    else:
        total = (log_probs + speaks.log()).logsumexp(dim=0) - speaks.sum(dim=0).log()
    return total.log_softmax(dim=-1)
