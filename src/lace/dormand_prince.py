"""An adaptive Runge-Kutta method (Dormand and Prince, 1980), row by row.

    dx/dt = f(x, t),   t from 0 to ``end``
    x' = x + h sum_i b_i k_i,   error = h sum_i (b_i - b*_i) k_i,   accepted if |error / (atol + rtol |x|)|_rms <= 1

Every row of x has a time and a step size of its own, so that its end does not depend on its neighbours; ``shared``
gives all the same. Gradients flow through the steps, and not through the choice of their sizes. ``march`` takes steps
of one size, fixed beforehand: nothing is decided on the way, so that a GPU need not wait for its host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .errors import ValueRangeError

__all__ = ["STEPS", "DormandPrince", "Flow", "Speed", "march"]

# The tableau: times, weights of the earlier slopes, and the error of the last row of them.
TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
WEIGHTS = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
# A flow that needs more steps than this has run into a wall.
STEPS = 10_000

# f(x [N, d], t [N], rows [N]): the speed of those rows of the start that are still on their way.
Speed = Callable[[Tensor, Tensor, Tensor], Tensor]


class Flow(NamedTuple):
    """Rows at x after the time ``spent`` of their own, with the speed there and the step to try next."""

    x: Tensor
    spent: Tensor
    speed: Tensor
    size: Tensor


@dataclass(frozen=True)
class DormandPrince:
    """Steps whose error is kept within ``atol`` + ``rtol`` |x|."""

    atol: float = 1e-3
    rtol: float = 1e-3
    shared: bool = False

    def __post_init__(self) -> None:
        if not (self.atol > 0 and self.rtol >= 0):
            raise ValueRangeError("atol must be above 0 and rtol at least 0.")

    def __call__(self, speed: Speed, x: Tensor, end: float) -> Tensor:
        """Where the flow from x is at time ``end``."""
        flow = self.begin(speed, x)
        for _ in range(STEPS):
            flow, _ = self.step(speed, flow, end)
            if bool((flow.spent >= end).all()):
                return flow.x
        raise endless(STEPS)

    def begin(self, speed: Speed, x: Tensor) -> Flow:
        """The first step's size: such that an Euler step and its change of speed stay small (Hairer et al., II.4)."""
        rows, spent = torch.arange(len(x), device=x.device), x.new_zeros(len(x))
        now = speed(x, spent, rows)
        with torch.no_grad():
            scale = self.atol + self.rtol * x.abs()
            far, fast = self._norm(x / scale), self._norm(now / scale)
            trial = torch.where((far < 1e-5) | (fast < 1e-5), 1e-6, 0.01 * far / fast)
            later = speed(x + trial[:, None] * now, spent + trial, rows)
            bend = self._norm((later - now) / scale) / trial
            steep = torch.maximum(fast, bend)
            size = torch.where(steep <= 1e-15, (trial * 1e-3).clamp_min(1e-6), (0.01 / steep) ** 0.2)
        return Flow(x, spent, now, torch.minimum(100 * trial, size))

    def step(self, speed: Speed, flow: Flow, end: float) -> tuple[Flow, Tensor]:
        """One try for every row still on its way, and which of those moved."""
        going = (flow.spent < end).nonzero()[:, 0]
        if len(going) < len(flow.x):
            some, good = self._try(
                lambda x, t, rows: speed(x, t, going[rows]), Flow(*(part[going] for part in flow)), end
            )
            return Flow(*(part.index_copy(0, going, new) for part, new in zip(flow, some, strict=True))), good
        return self._try(speed, flow, end)

    def _try(self, speed: Speed, here: Flow, end: float) -> tuple[Flow, Tensor]:
        there, ratio = self._ahead(speed, here, end)
        good = ratio <= 1
        factor = (SAFETY * ratio ** (-1 / 5)).clamp(SHRINK, GROW)
        size = here.size * torch.where(good, factor.clamp_min(1.0), factor)
        if not bool(good.any()):
            # A gradient need not pass through what came to nothing.
            return here._replace(size=size), good
        taken = Flow(*(torch.where(_like(good, new), new, old) for new, old in zip(there, here, strict=True)))
        return taken._replace(size=size), good

    def _ahead(self, speed: Speed, here: Flow, end: float) -> tuple[Flow, Tensor]:
        """One step of each row, not beyond the end, and its error over what is allowed."""
        size = torch.minimum(here.size, end - here.spent)
        x, slopes = _stride(speed, here, size)
        with torch.no_grad():
            error = size[:, None] * _blend(ERROR, slopes)
            allowed = self.atol + self.rtol * torch.maximum(here.x.abs(), x.abs())
            ratio = self._norm(error / allowed).nan_to_num(torch.inf)
        last = size >= end - here.spent
        return Flow(x, torch.where(last, end, here.spent + size), slopes[-1], size), ratio

    def _norm(self, rows: Tensor) -> Tensor:
        squares = rows.square().mean(dim=1)
        return (squares.mean().expand_as(squares) if self.shared else squares).sqrt()


def march(speed: Speed, x: Tensor, end: float, steps: int) -> Tensor:
    """Where the flow from x is at time ``end``, by equal steps whose error nobody looks at."""
    spent = x.new_zeros(len(x))
    size = torch.full_like(spent, end / steps)
    flow = Flow(x, spent, speed(x, spent, torch.arange(len(x), device=x.device)), size)
    for _ in range(steps):
        x, slopes = _stride(speed, flow, size)
        flow = Flow(x, flow.spent + size, slopes[-1], size)
    return flow.x


def endless(steps: int) -> ValueRangeError:
    """The refusal of a flow that does not come to its end."""
    return ValueRangeError(f"The flow is not at its end after {steps:,} steps; give larger tolerances.")


def _stride(speed: Speed, here: Flow, size: Tensor) -> tuple[Tensor, list[Tensor]]:
    """x after a step of each row, and the slopes on the way; the last one is that of where the step ends."""
    rows = torch.arange(len(here.x), device=here.x.device)
    slopes, x = [here.speed], here.x
    for time, weights in zip(TIMES, WEIGHTS, strict=True):
        x = here.x + size[:, None] * _blend(weights, slopes)
        slopes.append(speed(x, here.spent + time * size, rows))
    return x, slopes


def _blend(weights: tuple[float, ...], slopes: list[Tensor]) -> Tensor:
    total = weights[0] * slopes[0]
    for weight, slope in zip(weights[1:], slopes[1:], strict=True):
        # The tableau's zeros are not worth a pass through memory.
        total = total.add(slope, alpha=weight) if weight else total
    return total


def _like(mask: Tensor, rows: Tensor) -> Tensor:
    return mask.view(-1, *[1] * (rows.dim() - 1))
