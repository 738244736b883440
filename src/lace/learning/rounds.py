"""Rounds of labelling: the first takes every draw, later ones of a rare word take more of what the heads say is rare.

    chance_r(i) = min(1, s_r (1 + sum_c p_r(c | w_i) / (C share_c)) / 2)      summing to the pictures of the round
    weight(i)   = sum_r M_r / sum_r M_r chance_r(i)                           M_r addresses were considered in round r

A round considers a range of addresses, and each takes its chance by a coin of its own. Weighted so (the balance
heuristic; Veach and Guibas, 1995), means over what was labelled are means over all draws, without bias. Half of every
chance is the same for all, so that no weight is large; and p_r comes from heads that never saw the label that it bears
on: even addresses are judged by what odd ones taught, odd ones by even. Else what is known by heart would count less.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .. import rng
from ..attributes.heads import MlpHeads
from ..attributes.schema import Discrete
from ..files import written_whole
from .draws import CHUNK, SEED

__all__ = ["Chooser", "Round", "choose", "is_rare", "read_rounds", "weights"]

# Addresses that a later round considers for each picture that it labels.
POOL = 64
# A class with less than this share of an even one is rare; it can be aimed at once so many of it are labelled.
RARE, SEEN = 0.2, 8


@dataclass(frozen=True)
class Chooser:
    """What decides the chances of a round: a head for even addresses, one for odd ones, and how common classes are."""

    heads: tuple[MlpHeads, MlpHeads]
    shares: Tensor
    scale: float = 1.0

    @torch.no_grad()
    def wanted(self, index: Tensor, w: Tensor) -> Tensor:
        """(1 + sum_c p(c | w) / (C share_c)) / 2 for each address: 1 on average."""
        rarity = 1 / (self.shares.to(w) * len(self.shares))
        by_fold = torch.stack([heads.to(w.device)(w).exp() @ rarity for heads in self.heads])
        return (1 + by_fold.gather(0, (index % 2)[None])[0]) / 2

    def chance(self, index: Tensor, w: Tensor) -> Tensor:
        return (self.scale * self.wanted(index, w)).clamp(max=1)


@dataclass(frozen=True)
class Round:
    """A range of addresses, and with what chance each of them is labelled; without a chooser all are."""

    first: int
    count: int
    chooser: Chooser | None = None

    def chance(self, index: Tensor, w: Tensor) -> Tensor:
        return torch.ones(len(index), device=w.device) if self.chooser is None else self.chooser.chance(index, w)

    def taken(self, latents: Callable[[Tensor], Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
        """The addresses that are labelled, and the chance that each had."""
        parts = torch.arange(self.first, self.first + self.count, device=device).split(CHUNK)
        if self.chooser is None:
            return torch.cat(parts), torch.ones(self.count, device=device)
        chances = [self.chance(index, latents(index)) for index in parts]
        kept = [rng.uniform(SEED, i, rng.CHOICE) <= chance for i, chance in zip(parts, chances, strict=True)]
        pairs = list(zip(parts, chances, kept, strict=True))
        return torch.cat([i[k] for i, _, k in pairs]), torch.cat([chance[k] for _, chance, k in pairs])

    def save(self, folder: Path, number: int) -> None:
        """Its heads first, itself last: a round is there once its file is."""
        facts: dict[str, Any] = {"first": self.first, "count": self.count}
        if self.chooser is not None:
            facts |= {"shares": self.chooser.shares.tolist(), "scale": self.chooser.scale}
            for fold, heads in enumerate(self.chooser.heads):
                heads.save(folder / f"round-{number}-{fold}.safetensors", {})
        with written_whole(folder / f"round-{number}.json") as beside:
            beside.write_text(json.dumps(facts) + "\n", encoding="utf-8")


def read_rounds(folder: Path) -> list[Round]:
    """The rounds of a folder, in order."""
    rounds: list[Round] = []
    while (path := folder / f"round-{len(rounds)}.json").exists():
        facts = json.loads(path.read_text(encoding="utf-8"))
        chooser = None
        if "scale" in facts:
            even, odd = (MlpHeads.load(folder / f"round-{len(rounds)}-{fold}.safetensors") for fold in (0, 1))
            chooser = Chooser((even, odd), torch.tensor(facts["shares"]), facts["scale"])
        rounds.append(Round(facts["first"], facts["count"], chooser))
    return rounds


def is_rare(attribute: Discrete, shares: Tensor, seen: Tensor) -> bool:
    """Whether a class is so rare that further rounds should look for it, and known well enough to be looked for."""
    return float(shares.min()) < RARE / attribute.columns and float(seen.min()) >= SEEN


def choose(chooser: Chooser, first: int, n: int, latents: Callable[[Tensor], Tensor], device: torch.device) -> Round:
    """A round that labels about n of POOL * n further addresses."""
    parts = torch.arange(first, first + POOL * n, device=device).split(CHUNK)
    wanted = torch.cat([chooser.wanted(index, latents(index)) for index in parts]).double()
    low, high = 0.0, float(1 / wanted.min())
    for _ in range(60):
        scale = (low + high) / 2
        low, high = (low, scale) if float((scale * wanted).clamp(max=1).sum()) > n else (scale, high)
    return Round(first, POOL * n, Chooser(chooser.heads, chooser.shares, low))


def weights(rounds: list[tuple[Round, int]], index: Tensor, w: Tensor) -> Tensor:
    """How much each labelled address counts, 1 on average over all; rounds come with how many they considered."""
    taken = sum((considered * one.chance(index, w) for one, considered in rounds), torch.zeros(len(index)).to(w))
    return sum(considered for _, considered in rounds) / taken
