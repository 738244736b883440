"""What samplers ask (``Target``), what they give (``Samples``), and the loop of those that filter prior draws.

    posterior:  p(z | c)  ~  N(z; 0, I) p(c | z)

A filter goes through the addresses of a seed in order, 0, 1, 2, ..., and keeps those that pass a test which depends on
the one draw alone. So the first n results of a seed are the same for every chunk size, batch size and device.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import rng
from ..errors import UnsatisfiableCondition, ValueRangeError

__all__ = ["Filter", "Info", "Progress", "Sampler", "Samples", "Target"]

# Draws that are tried at once: enough to be quick, few enough to stop soon after the last one needed.
CHUNKS = (2**10, 2**15)
MAX_DRAWS = 2**20

Reading = Callable[[Tensor], Tensor]


class Target:
    """A condition as samplers see it: functions of latents z [N, latent_dim].

    Subclasses may know some addresses already and answer ``log_prob_at`` and ``margin_at`` without drawing z.
    """

    def __init__(self, latent_dim: int, log_prob: Reading, margin: Reading, device: torch.device | str = "cpu") -> None:
        self.latent_dim = latent_dim
        self.log_prob = log_prob
        self.margin = margin
        self.device = torch.device(device)

    def prior(self, seed: int, index: Tensor) -> Tensor:
        """The noise z at the addresses (seed, index)."""
        return rng.normal(seed, index, self.latent_dim)

    def log_prob_at(self, seed: int, index: Tensor) -> Tensor:
        """log p(c | z) at addresses."""
        return self.log_prob(self.prior(seed, index))

    def margin_at(self, seed: int, index: Tensor) -> Tensor:
        """How clearly the draws at addresses obey."""
        return self.margin(self.prior(seed, index))


@dataclass(frozen=True)
class Progress:
    """What a callback is told: how many results there are, of how many, after how many evaluations."""

    done: int
    total: int
    evaluations: int


@dataclass(frozen=True)
class Info:
    """How a result came about; ``evaluations`` counts latents whose condition was evaluated."""

    sampler: str
    settings: dict[str, Any]
    evaluations: int
    acceptance: float
    seconds: float


@dataclass(frozen=True)
class Samples:
    """Latents z [n, latent_dim]; ``index`` holds their addresses' indices where they are single prior draws."""

    z: Tensor
    seed: int
    index: Tensor | None
    info: Info

    @property
    def addresses(self) -> list[rng.Address]:
        """The address of every sample; none for chains and particles."""
        return [] if self.index is None else [rng.Address(self.seed, int(k)) for k in self.index]


Callback = Callable[[Progress], None]


class Sampler(abc.ABC):
    """Draw latents that obey a target."""

    name: str

    @abc.abstractmethod
    def __call__(self, target: Target, n: int, seed: int = 0, callback: Callback | None = None) -> Samples:
        """n latents; the same seed gives the same latents."""

    @property
    def settings(self) -> dict[str, Any]:
        """The sampler's own parameters, for records."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class Filter(Sampler):
    """Keep those prior draws that pass a test on each alone; subclasses write the test."""

    def __init__(self, max_draws: int = MAX_DRAWS, chunks: tuple[int, int] = CHUNKS) -> None:
        if max_draws < 1:
            raise ValueRangeError(f"max_draws must be at least 1, not {max_draws}.")
        self.max_draws = max_draws
        self._chunks = chunks

    @abc.abstractmethod
    def step(self, target: Target, seed: int, index: Tensor) -> Tensor:
        """Which of the draws at (seed, index) are kept: a bool for each."""

    @torch.inference_mode()
    def __call__(self, target: Target, n: int, seed: int = 0, callback: Callback | None = None) -> Samples:
        start, tried, kept = time.perf_counter(), 0, torch.empty(0, dtype=torch.long, device=target.device)
        while len(kept) < n and tried < self.max_draws:
            size = min(self._chunk(n, len(kept), tried), self.max_draws - tried)
            index = torch.arange(tried, tried + size, device=target.device)
            kept = torch.cat([kept, index[self.step(target, seed, index)]])
            tried += size
            if callback:
                callback(Progress(min(len(kept), n), n, tried))
        if len(kept) < n:
            raise UnsatisfiableCondition(f"Only {len(kept)} of {n} were found among {tried:,} draws.")
        acceptance = len(kept) / tried
        kept = kept[:n]
        info = Info(self.name, self.settings, tried, acceptance, time.perf_counter() - start)
        return Samples(target.prior(seed, kept), seed, kept, info)

    def _chunk(self, n: int, kept: int, tried: int) -> int:
        """How many draws to try next: a few more than should be needed, judged by those so far."""
        low, high = self._chunks
        wanted = 1.2 * (n - kept) * tried / kept if kept else max(low, 2 * tried)
        return int(min(max(wanted, low), high))
