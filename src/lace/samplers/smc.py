"""Sequential Monte Carlo: particles led from the prior to a rare condition, step by step (Del Moral et al., 2006).

    pi_k(z) ~ N(z; 0, I) p(c|z)^b_k,   0 = b_0 < b_1 < ... < b_K = gamma
    w_i = p(c|z_i)^(b_k - b_(k-1)),   Z = prod_k mean_i w_i,   systematic resampling by w, elliptical moves under pi_k

Scouts, fewer particles with noise of their own, choose each b_k so that their weights are worth a fraction
``survivors`` of them. The particles follow that ladder as it is: so Z is an unbiased estimate of E[p(c|z)^gamma], which
is P(c) for gamma = 1. Each first particle adds its own share to Z, as its c_i descendants among the last ones show, so
the relative variance of Z is near that of their mean,  V = (mean_i c_i^2 - 1) / N  (Lee and Whiteley, 2018, without the
noise that systematic resampling does not have).
"""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor

from .. import rng
from ..errors import UnsatisfiableCondition, ValueRangeError
from .base import Callback, Counted, Info, Noise, Progress, Sampler, Samples, Target
from .elliptical import Known, elliptical_move

__all__ = ["Smc", "systematic"]

# Rarer than this is nothing that a generator draws.
FLOOR = math.log(1e-9)
# Scouts for each hundred particles.
SCOUTS = 25


class Smc(Sampler):
    """Particles, ``moves`` elliptical moves for each rung of the ladder. More results than particles take more runs."""

    name = "smc"

    def __init__(self, particles: int = 1024, moves: int = 4, survivors: float = 0.5, gamma: float = 1.0) -> None:
        if particles < 100 or moves < 1:
            raise ValueRangeError("SMC needs at least 100 particles and 1 move.")
        if not (0 < survivors < 1 and gamma > 0):
            raise ValueRangeError("survivors lies between 0 and 1, and gamma above 0.")
        self.particles, self.moves, self.survivors, self.gamma = particles, moves, survivors, gamma

    @torch.no_grad()
    def __call__(self, target: Target, n: int, seed: int = 0, callback: Callback | None = None) -> Samples:
        start, counted, runs = time.perf_counter(), Counted(target), -(-n // self.particles)
        ladder = self.scout(counted, seed)
        found: list[Cloud] = []
        for run in range(runs):
            index = torch.arange(self.particles, device=target.device) + run * self.particles
            cloud = Cloud.drawn(counted, seed, index, rng.WALK)
            for rung, power in enumerate(ladder):
                cloud.climb(power, self.moves)
                if callback:
                    done = n * (run * len(ladder) + rung + 1) // (runs * len(ladder))
                    callback(Progress(done, n, counted.evaluations))
            found.append(cloud)
        logs = torch.tensor([cloud.log_evidence for cloud in found], dtype=torch.float64)
        spread = math.sqrt(sum(cloud.variance() for cloud in found)) / runs
        info = Info(
            self.name,
            self.settings,
            counted.evaluations,
            sum(cloud.moved for cloud in found) / (runs * len(ladder) * self.moves),
            time.perf_counter() - start,
            sum(cloud.lineages() for cloud in found),
            (float(logs.logsumexp(dim=0)) - math.log(runs), spread),
        )
        return Samples(torch.cat([cloud.shuffled() for cloud in found])[:n], seed, None, info)

    def scout(self, target: Counted, seed: int) -> list[float]:
        """The ladder b_1 ... b_K, chosen by scouts on their own way up."""
        index = torch.arange(max(100, self.particles * SCOUTS // 100), device=target.target.device)
        cloud, ladder = Cloud.drawn(target, seed, index, rng.SCOUT), [0.0]
        while ladder[-1] < self.gamma:
            ladder.append(cloud.next_rung(self.gamma, self.survivors))
            cloud.climb(ladder[-1], self.moves)
            # Jensen: P(c) <= E[p^b]^(1 / b) for b above 1.
            if cloud.log_evidence < FLOOR * max(ladder[-1], 1.0):
                raise UnsatisfiableCondition("Particles that were led there found next to nothing.")
        return ladder[1:]


class Cloud:
    """Particles at one rung: where they are, how likely the condition is there, and whom they descend from."""

    def __init__(self, target: Counted, place: Known, noise: Noise) -> None:
        self._target, self._place, self._noise = target, place, noise
        self._eve = torch.arange(len(place.z), device=place.z.device)
        self.power, self.log_evidence, self.moved = 0.0, 0.0, 0.0

    @classmethod
    def drawn(cls, target: Counted, seed: int, index: Tensor, streams: int) -> Cloud:
        """Prior draws."""
        noise = Noise(seed, index, 0, streams)
        z = noise.normal(target.target.latent_dim)
        return cls(target, Known(z, target.value(z)), noise.next())

    @property
    def values(self) -> Tensor:
        """log p(c|z)."""
        return self._place.value.double()

    def next_rung(self, gamma: float, survivors: float) -> float:
        """The power up to gamma at which the weights are worth this fraction of the particles that can obey at all."""
        values = self.values[self.values > -math.inf]
        low, high = self.power, gamma
        if not len(values) or worth((high - low) * values) >= survivors * len(values):
            return gamma
        for _ in range(40):
            middle = (low + high) / 2
            enough = worth((middle - self.power) * values) >= survivors * len(values)
            low, high = (middle, high) if enough else (low, middle)
        return high

    def climb(self, power: float, moves: int) -> None:
        """Weigh, resample, move."""
        logs = (power - self.power) * self.values
        self.log_evidence += float(logs.logsumexp(dim=0)) - math.log(len(logs))
        self.power = power
        if self.log_evidence == -math.inf:
            raise UnsatisfiableCondition("No particle obeys at all.")
        chosen = systematic(logs, float(self._noise.uniforms(1)[0, 0]))
        place, self._eve = Known(self._place.z[chosen], self._place.value[chosen]), self._eve[chosen]
        for _ in range(moves):
            self._noise = self._noise.next()
            place, moved = elliptical_move(self._target, place, power, self._noise)
            self.moved += float(moved.float().mean())
        self._place, self._noise = place, self._noise.next()

    def shuffled(self) -> Tensor:
        """z in random order: neighbours may be siblings."""
        return self._place.z[self._noise.uniforms(1)[:, 0].argsort()]

    def _shares(self) -> float:
        """sum c_i^2 / N^2."""
        return float((torch.bincount(self._eve).double() / len(self._eve)).square().sum())

    def lineages(self) -> float:
        """How many evenly fertile ancestors the particles could have."""
        return 1 / self._shares()

    def variance(self) -> float:
        """The relative variance of the evidence; rounding may leave a sure one just below zero."""
        return max(self._shares() - 1 / len(self._eve), 0.0)


def worth(logs: Tensor) -> float:
    """How many equal weights the weights exp(logs) are worth: (sum w)^2 / sum w^2."""
    return float((2 * logs.logsumexp(dim=0) - (2 * logs).logsumexp(dim=0)).exp())


def systematic(logs: Tensor, u: float) -> Tensor:
    """Whom each particle becomes: the k-th takes the one on whose share of [0, 1] the point (k + u) / N falls."""
    n = len(logs)
    points = (torch.arange(n, device=logs.device, dtype=torch.float64) + (1 - u)) / n
    edges = logs.softmax(dim=0).cumsum(dim=0)
    return torch.searchsorted(edges / edges[-1], points, right=True).clamp(max=n - 1)
