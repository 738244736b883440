"""An adaptive Runge-Kutta method (Dormand and Prince, 1980; its error by Shampine, 1986), row by row.

    dx/dt = f(x, t),   t from 0 to ``end``
    x' = x + h sum_i b_i k_i,   error = h sum_i e_i k_i,   accepted if |error / (atol + rtol |x|)|_rms <= 1

Every row of x has a time and a step size of its own, so that its end does not depend on its neighbours; ``shared``
gives all the same. Gradients flow through the steps, and not through the choice of their sizes. ``march`` takes steps
of one size, fixed beforehand: nothing is decided on the way, so that a GPU need not wait for its host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from .errors import ValueRangeError

__all__ = ["STEPS", "DormandPrince", "Flow", "Speed", "march"]

# The tableau: times, weights of the earlier slopes, and the error of the last row of them. The error is two thirds of
# that of 1980, as in the solvers that the paper and StyleFlow call: the same tolerance means the same steps.
TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
WEIGHTS = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 86400, 0.0, -142 / 50085, 71 / 2880, -5751 / 169600, 44 / 1575, -1 / 60)
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
# A flow that needs more steps than this has run into a wall.
STEPS = 10_000

# f(x [N, d], t [N], rows [N]): the speed of those rows of the start.
Speed = Callable[[Tensor, Tensor, Tensor], Tensor]


class Flow(NamedTuple):
    """Rows at x after the time ``spent`` of their own, with the speed there and the step to try next.

    ``rows`` says which rows of the start these are, and ``going``, on the host, which of them are still on their way;
    ``left`` has a row for all, those that were left behind at their ends.
    """

    x: Tensor
    spent: Tensor
    speed: Tensor
    size: Tensor
    rows: Tensor
    going: Tensor
    left: Tensor

    @property
    def all(self) -> Tensor:
        """Where all rows of the start are."""
        return self.left.index_copy(0, self.rows, self.x)

    def packed(self) -> Flow:
        """Without rows that arrived, where that halves the rest: work of few sizes is prepared once for each."""
        room = 1 << (int(self.going.sum()) - 1).bit_length() if self.going.any() else len(self.x)
        if room >= len(self.x):
            return self
        # Those on their way, and some that arrived to fill the room.
        kept = self.going.logical_not().argsort(stable=True)[:room]
        here = kept.to(self.x.device)
        x, spent, speed, size, rows = (part[here] for part in self[:5])
        return Flow(x, spent, speed, size, rows, self.going[kept], self.all)


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
            if not flow.going.any():
                return flow.all
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
        size = torch.minimum(100 * trial, size)
        return Flow(x, spent, now, size, rows, torch.ones(len(x), dtype=torch.bool), x)

    def step(self, speed: Speed, flow: Flow, end: float) -> tuple[Flow, Tensor]:
        """One try for every row, and which of those on their way moved; both are known on the host.

        A row at its end takes steps of no length. It costs less to have some of them than to have a new number of rows
        at each step, and the device is waited for but once.
        """
        x, spent, now, ratio = self._ahead(speed, flow, end)
        good = ratio <= 1
        factor = (SAFETY * ratio ** (-1 / 5)).clamp(SHRINK, GROW)
        size = flow.size * torch.where(good, factor.clamp_min(1.0), factor)
        spent = torch.where(good, spent, flow.spent)
        moved, going = torch.stack([good, spent < end]).cpu()
        tried = moved[flow.going]
        if not tried.any():
            # A gradient need not pass through what came to nothing.
            return flow._replace(size=size), tried
        taken = good[:, None]
        x, now = torch.where(taken, x, flow.x), torch.where(taken, now, flow.speed)
        return Flow(x, spent, now, size, flow.rows, going, flow.left).packed(), tried

    def _ahead(self, speed: Speed, here: Flow, end: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One step of each row, not beyond the end: place, time and speed there, and the error over what is allowed."""
        size = torch.minimum(here.size, end - here.spent)
        x, spent, now, error = _stride(speed, here.x, here.spent, here.speed, here.rows, size)
        with torch.no_grad():
            allowed = self.atol + self.rtol * torch.maximum(here.x.abs(), x.abs())
            ratio = self._norm(error / allowed).nan_to_num(torch.inf)
        return x, torch.where(size < end - here.spent, spent, end), now, ratio

    def _norm(self, rows: Tensor) -> Tensor:
        squares = rows.square().mean(dim=1)
        return (squares.mean().expand_as(squares) if self.shared else squares).sqrt()


def march(speed: Speed, x: Tensor, end: float, steps: int) -> Tensor:
    """Where the flow from x is at time ``end``, by equal steps whose error nobody looks at."""
    rows, spent = torch.arange(len(x), device=x.device), x.new_zeros(len(x))
    size, now = torch.full_like(spent, end / steps), speed(x, spent, rows)
    for _ in range(steps):
        x, spent, now, _ = _stride(speed, x, spent, now, rows, size)
    return x


def _stride(
    speed: Speed, start: Tensor, spent: Tensor, now: Tensor, rows: Tensor, size: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A step of each row: place, time and speed there, and the error."""
    times, weights = _tableau(start.dtype, start.device)
    moments = torch.addcmul(spent, times[:, None], size)
    # What every later stage, and the error, have of the slopes so far.
    sums, x = weights[0] * now, start
    for stage, moment in enumerate(moments):
        x = torch.addcmul(start, size[:, None], sums[stage])
        now = speed(x, moment, rows)
        sums = torch.addcmul(sums, weights[stage + 1], now)
    return x, moments[-1], now, size[:, None] * sums[-1]


@cache
def _tableau(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """The times [6], and of each slope its weights [7, 7, 1, 1] in the six stages and in the error."""
    columns = [row + (0.0,) * (7 - len(row)) for row in (*WEIGHTS, ERROR)]
    # Not of inference mode, whose tensors gradients cannot pass.
    with torch.inference_mode(False):
        times = torch.tensor(TIMES, dtype=dtype, device=device)
        return times, torch.tensor(columns, dtype=dtype, device=device).T[:, :, None, None].contiguous()


def endless(steps: int) -> ValueRangeError:
    """The refusal of a flow that does not come to its end."""
    return ValueRangeError(f"The flow is not at its end after {steps:,} steps; give larger tolerances.")
