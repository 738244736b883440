"""What samplers ask (``Target``), what they give (``Samples``), and the two loops that they share.

    posterior:  p(z | c)  ~  N(z; 0, I) p(c | z)

A filter goes through the addresses of a seed in order, 0, 1, 2, ..., and keeps those that pass a test which depends on
the one draw alone. A walk starts at each of the addresses 0 ... n - 1 and moves step by step, with noise that belongs
to its address. Either way the first n results of a seed are the same for every chunk size, batch size and device.
"""

from __future__ import annotations

import abc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import rng
from ..errors import UnsatisfiableCondition, ValueRangeError

__all__ = [
    "Counted",
    "Filter",
    "Info",
    "Noise",
    "Place",
    "Progress",
    "Sampler",
    "Samples",
    "Target",
    "Walk",
    "posterior_slope",
]

# Draws that are tried at once: enough to be quick, few enough to stop soon after the last one needed.
CHUNKS = {"cpu": (2**5, 2**15), "cuda": (2**10, 2**16)}
# With as many as this a draft is worth its while.
MANY = 2**13
MAX_DRAWS = 2**20
# Walks that move side by side.
BATCH = 2**11

Reading = Callable[[Tensor], Tensor]


class Target:
    """A condition as samplers see it: functions of latents z [N, latent_dim].

    ``log_prob`` is log p(c | z), or minus an energy where ``is_probability`` is false: then it may lie above zero.
    Subclasses may know some addresses already and answer ``log_prob_at`` and ``margin_at`` without drawing z, give
    every walk a condition of its own (``log_prob_of``), or record on a GPU what is asked again and again (``value``,
    ``slope``). ``draft`` is the same condition by rougher and quicker arithmetic, where that pays: it says no less than
    the truth, where a draw has a chance, and not much more.
    """

    draft: Target | None = None

    def __init__(
        self,
        latent_dim: int,
        log_prob: Reading,
        margin: Reading,
        device: torch.device | str = "cpu",
        is_probability: bool = True,
    ) -> None:
        self.latent_dim = latent_dim
        self.log_prob = log_prob
        self.margin = margin
        self.device = torch.device(device)
        self.is_probability = is_probability
        # What samplers worked out about this target, under whatever name they give it.
        self.notes: dict[Any, Any] = {}

    def prior(self, seed: int, index: Tensor) -> Tensor:
        """The noise z at the addresses (seed, index)."""
        return rng.normal(seed, index, self.latent_dim)

    def log_prob_of(self, z: Tensor, index: Tensor | None) -> Tensor:
        """log p(c | z) for walks that started at ``index``; None where nobody walks."""
        return self.log_prob(z)

    @torch.no_grad()
    def value(self, z: Tensor, index: Tensor | None = None) -> Tensor:
        """:meth:`log_prob_of`, for samplers that need no gradient."""
        return self.log_prob_of(z, index)

    @torch.enable_grad()
    def slope(self, z: Tensor, index: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """log p(c | z) and its gradient."""
        z = z.detach().clone().requires_grad_()
        value = self.log_prob_of(z, index)
        (slope,) = torch.autograd.grad(value.sum(), z)
        return value.detach(), slope

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
    """How a result came about.

    ``evaluations`` counts latents whose condition was evaluated; ``acceptance`` is the share of draws kept or of moves
    taken. Particles also have ``ess``, how many independent draws they are worth, and an estimate of log P(c) with its
    standard error.
    """

    sampler: str
    settings: dict[str, Any]
    evaluations: int
    acceptance: float
    seconds: float
    ess: float | None = None
    log_evidence: tuple[float, float] | None = None


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
        return [] if self.index is None else [rng.Address(self.seed, k) for k in self.index.tolist()]


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
    """Keep those prior draws that pass a test on each alone; subclasses write the test.

    ``share`` is how many of the draws should pass, where somebody knows. Where ``is_rising`` a draw that passes would
    also pass with a larger log p(c | z) and margin, so that a target's draft may rule draws out.
    """

    is_rising = False

    def __init__(
        self, max_draws: int = MAX_DRAWS, chunks: tuple[int, int] | None = None, share: float | None = None
    ) -> None:
        if max_draws < 1:
            raise ValueRangeError(f"max_draws must be at least 1, not {max_draws}.")
        self.max_draws = max_draws
        self._chunks, self._share = chunks, share

    @abc.abstractmethod
    def step(self, target: Target, seed: int, index: Tensor) -> Tensor:
        """Which of the draws at (seed, index) are kept: a bool for each."""

    @torch.inference_mode()
    def __call__(self, target: Target, n: int, seed: int = 0, callback: Callback | None = None) -> Samples:
        start, tried, kept = time.perf_counter(), 0, torch.empty(0, dtype=torch.long, device=target.device)
        while len(kept) < n and tried < self.max_draws:
            size = min(self._chunk(n, len(kept), tried, target.device), self.max_draws - tried)
            index = torch.arange(tried, tried + size, device=target.device)
            kept = torch.cat([kept, self._passing(target, seed, index)])
            tried += size
            if callback:
                callback(Progress(min(len(kept), n), n, tried))
        if len(kept) < n:
            raise UnsatisfiableCondition(f"Only {len(kept)} of {n} were found among {tried:,} draws.")
        acceptance = len(kept) / tried
        kept = kept[:n]
        info = Info(self.name, self.settings, tried, acceptance, time.perf_counter() - start)
        return Samples(target.prior(seed, kept), seed, kept, info)

    def _passing(self, target: Target, seed: int, index: Tensor) -> Tensor:
        """The draws that are kept; where there are many, those that the draft rules out are not looked at again."""
        if self.is_rising and target.draft is not None and len(index) >= MANY:
            index = index[self.step(target.draft, seed, index)]
        return index[self.step(target, seed, index)]

    def _chunk(self, n: int, kept: int, tried: int, device: torch.device) -> int:
        """How many draws to try next: a few more than should be needed, judged by those so far."""
        low, high = self._chunks or CHUNKS.get(device.type, CHUNKS["cpu"])
        # One more success and one more failure than there were: nothing is certain after a few draws.
        share = (kept + 1) / (tried + 2) if tried or self._share is None else self._share
        wanted = 1.2 * (n - kept) / max(share, 1 / high)
        # Powers of two: a GPU records what comes in few sizes.
        return min(max(2 ** math.ceil(math.log2(wanted)), low), high)


class Counted:
    """A target whose evaluations are counted; ``index`` says where the walks started whose places it is asked about."""

    def __init__(self, target: Target) -> None:
        self.target, self.evaluations = target, 0
        self.index: Tensor | None = None

    def value(self, z: Tensor, rows: Tensor | None = None) -> Tensor:
        """log p(c | z); ``rows`` says which of the walks these are, where they are not all."""
        self.evaluations += len(z)
        return self.target.value(z, self._index(rows))

    def slope(self, z: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """log p(c | z) and its gradient."""
        self.evaluations += len(z)
        return self.target.slope(z, self._index(rows))

    def _index(self, rows: Tensor | None) -> Tensor | None:
        return self.index if self.index is None or rows is None else self.index[rows]


def posterior_slope(target: Counted, z: Tensor) -> Tensor:
    """The gradient of log p(c | z) + log N(z; 0, I)."""
    return target.slope(z)[1] - z


@dataclass(frozen=True)
class Noise:
    """The random numbers of one step of walks at (seed, index): the same alone and in a batch."""

    seed: int
    index: Tensor
    step: int
    streams: int = rng.WALK

    def next(self) -> Noise:
        """The noise of the next step."""
        return replace(self, step=self.step + 1)

    def normal(self, dim: int) -> Tensor:
        """Standard normals [walks, dim]."""
        return rng.normal(self.seed, self.index, dim, self.streams + 2 * self.step)

    def uniforms(self, count: int) -> Tensor:
        """Uniform numbers in (0, 1], [walks, count]."""
        return rng.uniforms(self.seed, self.index, count, self.streams + 2 * self.step + 1)


class Place(NamedTuple):
    """Where walks are. Kernels that go on from log p(c | z) keep it in a state of their own."""

    z: Tensor


class Walk(Sampler):
    """n walks from prior draws, ``steps`` steps each; subclasses write the step."""

    def __init__(self, steps: int, batch: int = BATCH) -> None:
        for name, value in (("steps", steps), ("batch", batch)):
            if value < 1:
                raise ValueRangeError(f"{name} must be at least 1, not {value}.")
        self.steps = steps
        self._batch = batch

    def begin(self, target: Counted, z: Tensor) -> Any:
        """The state of walks that start at z; whatever it is, it has its place in ``z``."""
        return Place(z)

    @abc.abstractmethod
    def step(self, target: Counted, place: Any, noise: Noise) -> tuple[Any, Tensor | None]:
        """The next state, and which of the walks that tried to move did (None: all of them)."""

    def arrived(self, place: Any) -> bool:
        """Whether the walks end before their last step."""
        return False

    def __call__(self, target: Target, n: int, seed: int = 0, callback: Callback | None = None) -> Samples:
        start, counted, ends, tried, moved = time.perf_counter(), Counted(target), [], 0, 0.0
        for index in torch.arange(n, device=target.device).split(self._batch):
            counted.index = index
            place = self.begin(counted, target.prior(seed, index))
            for step in range(self.steps):
                place, taken = self.step(counted, place, Noise(seed, index, step))
                tried += len(index) if taken is None else len(taken)
                moved += len(index) if taken is None else float(taken.sum())
                arrived = step + 1 == self.steps or self.arrived(place)
                if callback:
                    done = len(index) if arrived else len(index) * step // self.steps
                    callback(Progress(int(index[0]) + done, n, counted.evaluations))
                if arrived:
                    break
            ends.append(place.z)
        info = Info(self.name, self.settings, counted.evaluations, moved / tried, time.perf_counter() - start)
        return Samples(torch.cat(ends), seed, None, info)
