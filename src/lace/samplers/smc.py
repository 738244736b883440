"""Sequential Monte Carlo: particles led from the prior to a rare condition, step by step (Del Moral et al., 2006).

    pi_k(z) ~ N(z; 0, I) p(c|z)^b_k,   0 = b_0 < b_1 < ... < b_K = gamma
    w_i = p(c|z_i)^(b_k - b_(k-1)),   Z = prod_k mean_i w_i,   systematic resampling by w, then moves under pi_k:
    z' = z cos t_k + v sin t_k,   v ~ N(0, I),   taken with probability min(1, [p(c|z') / p(c|z)]^b_k)

A move turns z within the prior, which it leaves as it is (pCN; Cotter, Roberts, Stuart and White, 2013), so only the
condition decides. It costs one evaluation and looks at nothing else, so that a GPU never waits for an answer.

Scouts, fewer particles with noise of their own, choose each b_k so that their weights are worth a fraction
``survivors`` of them, and each t_k so that three moves in ten are taken. The particles follow that ladder as it is: so
Z is an unbiased estimate of E[p(c|z)^gamma], which is P(c) for gamma = 1. Scouts are the same for every seed, and a
target that they climbed once is not climbed by them again.

Each first particle adds its own share to Z, as its c_i descendants among the last ones show, so the relative variance
of Z is near that of their mean,  V = (mean_i c_i^2 - 1) / N  (Lee and Whiteley, 2018, without the noise that systematic
resampling does not have).
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import torch
from torch import Tensor

from .. import rng
from ..errors import UnsatisfiableCondition, ValueRangeError
from .base import Callback, Counted, Info, Noise, Progress, Sampler, Samples, Target
from .elliptical import Known

__all__ = ["Smc", "systematic"]

# Rarer than this is nothing that a generator draws.
FLOOR = math.log(1e-9)
# Scouts for each hundred particles.
SCOUTS = 25
# The share of moves that are to be taken, how fast scouts learn the turn for it, and the least turn.
TAKEN, LEARN, LEAST = 0.3, 1.0, 0.01


class Rung(NamedTuple):
    """b_k and t_k."""

    power: float
    turn: float


class Smc(Sampler):
    """Particles, ``moves`` moves for each rung of the ladder. More results than particles take more runs."""

    name = "smc"

    def __init__(self, particles: int = 1024, moves: int = 10, survivors: float = 0.5, gamma: float = 1.0) -> None:
        if particles < 100 or moves < 1:
            raise ValueRangeError("SMC needs at least 100 particles and 1 move.")
        if not (0 < survivors < 1 and gamma > 0):
            raise ValueRangeError("survivors lies between 0 and 1, and gamma above 0.")
        self.particles, self.moves, self.survivors, self.gamma = particles, moves, survivors, gamma

    @torch.no_grad()
    def __call__(self, target: Target, n: int, seed: int = 0, callback: Callback | None = None) -> Samples:
        start, counted, runs = time.perf_counter(), Counted(target), -(-n // self.particles)
        ladder = self.ladder(counted)
        found: list[Cloud] = []
        for run in range(runs):
            index = torch.arange(self.particles, device=target.device) + run * self.particles
            cloud = Cloud.drawn(counted, seed, index, rng.WALK)
            for k, rung in enumerate(ladder):
                cloud.climb(rung, self.moves)
                if callback:
                    done = n * (run * len(ladder) + k + 1) // (runs * len(ladder))
                    callback(Progress(done, n, counted.evaluations))
            found.append(cloud)
        logs = torch.tensor([cloud.log_evidence for cloud in found], dtype=torch.float64)
        spread = math.sqrt(sum(cloud.variance() for cloud in found)) / runs
        info = Info(
            self.name,
            self.settings,
            counted.evaluations,
            float(sum(cloud.moved for cloud in found)) / (runs * len(ladder) * self.moves),
            time.perf_counter() - start,
            sum(cloud.lineages() for cloud in found),
            (float(logs.logsumexp(dim=0)) - math.log(runs), spread),
        )
        return Samples(torch.cat([cloud.shuffled() for cloud in found])[:n], seed, None, info)

    def ladder(self, target: Counted) -> list[Rung]:
        """The scouts' ladder; the target remembers it."""
        notes, key = target.target.notes, (self.name, *self.settings.values())
        if key not in notes:
            notes[key] = self.scout(target)
        ladder: list[Rung] = notes[key]
        return ladder

    def scout(self, target: Counted) -> list[Rung]:
        """The ladder, chosen by scouts on their own way up."""
        index = torch.arange(max(100, self.particles * SCOUTS // 100), device=target.target.device)
        cloud, ladder = Cloud.drawn(target, 0, index, rng.SCOUT), [Rung(0.0, math.pi / 2)]
        while ladder[-1].power < self.gamma:
            next_up = Rung(cloud.next_rung(self.gamma, self.survivors), ladder[-1].turn)
            ladder.append(Rung(next_up.power, cloud.climb(next_up, self.moves, learn=LEARN)))
            # Jensen: P(c) <= E[p^b]^(1 / b) for b above 1.
            if cloud.log_evidence < FLOOR * max(ladder[-1].power, 1.0):
                raise UnsatisfiableCondition("Particles that were led there found next to nothing.")
        return ladder[1:]


class Cloud:
    """Particles at one rung: where they are, how likely the condition is there, and whom they descend from."""

    def __init__(self, target: Counted, place: Known, noise: Noise) -> None:
        self._target, self._place, self._noise = target, place, noise
        self._eve = torch.arange(len(place.z), device=place.z.device)
        self.power, self.log_evidence = 0.0, 0.0
        self.moved = torch.zeros((), device=place.z.device)

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

    def climb(self, rung: Rung, moves: int, learn: float = 0.0) -> float:
        """Weigh, resample, move; the turn in the end, if moves are to be learned from."""
        logs = (rung.power - self.power) * self.values
        self.log_evidence += float(logs.logsumexp(dim=0)) - math.log(len(logs))
        self.power = rung.power
        if self.log_evidence == -math.inf:
            raise UnsatisfiableCondition("No particle obeys at all.")
        chosen = systematic(logs, float(self._noise.uniforms(1)[0, 0]))
        self._place, self._eve = Known(self._place.z[chosen], self._place.value[chosen]), self._eve[chosen]
        turn = rung.turn
        for _ in range(moves):
            taken = self.move(turn).mean()
            self.moved += taken
            if learn:
                turn = min(max(turn * math.exp(learn * (float(taken) - TAKEN)), LEAST), math.pi / 2)
        self._noise = self._noise.next()
        return turn

    def move(self, turn: float) -> Tensor:
        """Each particle tries one turn: 1 where it was taken, 0 where not."""
        self._noise, (z, value) = self._noise.next(), self._place
        proposed = z * math.cos(turn) + self._noise.normal(z.shape[1]) * math.sin(turn)
        reached = self._target.value(proposed)
        # Where both are impossible their difference is no number, and nothing moves.
        taken = self._noise.uniforms(1)[:, 0].log() < self.power * (reached - value)
        self._place = Known(torch.where(taken[:, None], proposed, z), torch.where(taken, reached, value))
        return taken.float()

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
