"""Logarithms of probabilities, accurate where the plain formulas lose everything."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["log1mexp", "log_ndtr", "log_normal_interval"]


def log1mexp(log: Tensor) -> Tensor:
    """log(1 - e^l) for l <= 0, by whichever form is accurate there; l = 0 gives a large negative number."""
    # Rounding may leave a log at zero or just above, where neither value nor gradient is finite.
    log = log.clamp(max=-torch.finfo(log.dtype).tiny)
    near_zero = log > -math.log(2)
    small = torch.where(near_zero, log, -1.0)
    large = torch.where(near_zero, -1.0, log)
    return torch.where(near_zero, (-torch.expm1(small)).log(), torch.log1p(-large.exp()))


def log_normal_interval(low: Tensor, high: Tensor) -> Tensor:
    """log(Phi(high) - Phi(low)), accurate in both tails."""
    # Mirror intervals that lie to the right, where Phi is near one.
    mirror = low > 0
    a, b = torch.where(mirror, -high, low), torch.where(mirror, -low, high)
    upper, lower = log_ndtr(b), log_ndtr(a)
    return upper + log1mexp(lower - upper)


def log_ndtr(x: Tensor) -> Tensor:
    """log Phi with the limits that torch's function misses at infinity."""
    finite = torch.special.log_ndtr(x.clamp(-1e4, 1e4))
    return torch.where(x == -math.inf, -math.inf, finite)
