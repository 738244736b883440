"""StyleFlow: a conditional continuous normalising flow between w and noise (Abdal et al., TOG 2021, arXiv:2008.02401).

    z = N2(x(T)),   dx/dt = f(x, t, c),   x(0) = N1(w)                          N1, N2: moving batch norms
    f: six layers   (W x + b) sigmoid(G [t, c] + g) + H [t, c],   tanh between
    log p(w|c) = log N(z; 0, I) + integral of tr(df/dx) dt + log |N1'| + log |N2'|,   tr(J) ~ e.J e,   e ~ N(0, I)

T is learned. e stays the same through one solve, and J e is carried along f as a tangent; with the unit vectors in the
place of e the density is exact. Drawing given c runs the flow backwards from noise; an edit encodes w with what it
shows and decodes it with what it shall show, and all of that is exact up to the solver's tolerance.

The authors repeat w for each of the generator's layers, so that a step sees as many e of the same w; here w is one row.
They give attributes in their raw units; here c is standardised, a change that the first layers could learn themselves.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import rng
from ..attributes.card import read_with_card, write_with_card
from ..attributes.schema import Schema
from ..dormand_prince import DormandPrince, march
from ..errors import DataError
from .training import Report, Settings, recorded, sound, steps
from .values import filled

__all__ = ["StyleFlow", "fit", "unit_probes"]

LAYERS = 6
TOLERANCE = 1e-5
# Steps of the flow while it is trained: as many as the tolerance asks for, and some to spare.
STEPS = 6
EPS = 1e-4
DECAY = 0.1


class Velocity(nn.Module):
    """f(x, t, c), and what it does to tangents."""

    def __init__(self, dim: int, condition: int, hidden: int | None = None) -> None:
        super().__init__()
        sizes = [dim, *[hidden or dim] * (LAYERS - 1), dim]
        self.weights = nn.ParameterList(torch.empty(b, a) for a, b in pairwise(sizes))
        # Biases, gates and shifts of all layers lie end to end, for one product each.
        self.biases = nn.Parameter(torch.empty(sum(sizes[1:])))
        self.gates = nn.Linear(1 + condition, sum(sizes[1:]))
        self.shifts = nn.Linear(1 + condition, sum(sizes[1:]), bias=False)
        self._widths = sizes[1:]

    def forward(self, x: Tensor, t: Tensor, c: Tensor, tangents: Tensor) -> tuple[Tensor, Tensor]:
        """f [N, dim] and df/dx times each of the tangents [probes, N, dim]."""
        about = torch.cat([t[:, None], c], dim=1)
        gates = self.gates(about).sigmoid()
        shifts = torch.addcmul(self.shifts(about), self.biases, gates)
        split = (rows.split(self._widths, dim=1) for rows in (gates, shifts))
        for k, (weight, gate, shift) in enumerate(zip(self.weights, *split, strict=True)):
            if k:
                x = x.tanh()
                tangents = torch.addcmul(tangents, tangents * x, x, value=-1)
            x, tangents = torch.addcmul(shift, F.linear(x, weight), gate), F.linear(tangents, weight) * gate
        return x, tangents

    def initialise(self, generator: torch.Generator) -> None:
        """Uniform within one over the root of the number of inputs."""
        limits = [weight.shape[1] ** -0.5 for weight in self.weights]
        for weight, bias, limit in zip(self.weights, self.biases.split(self._widths), limits, strict=True):
            weight.data.uniform_(-limit, limit, generator=generator)
            bias.data.uniform_(-limit, limit, generator=generator)
        for parameter in (*self.gates.parameters(), *self.shifts.parameters()):
            limit = self.gates.in_features**-0.5
            parameter.data.uniform_(-limit, limit, generator=generator)


class MovingNorm(nn.Module):
    """(x - mean) / std e^scale + shift for each column; mean and std follow the training batches."""

    mean: Tensor
    variance: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("variance", torch.ones(dim))

    @property
    def log_slope(self) -> Tensor:
        """The logarithm of the factor on each column."""
        return self.scale - (self.variance + EPS).log() / 2

    def forward(self, x: Tensor) -> Tensor:
        """A batch in training is normalised by those before it: then each is a fixed, invertible map."""
        y = (x - self.mean) * self.log_slope.exp() + self.shift
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(dim=0), DECAY)
                self.variance.lerp_(x.var(dim=0), DECAY)
        return y

    def inverse(self, y: Tensor) -> Tensor:
        return (y - self.shift) * (-self.log_slope).exp() + self.mean


class StyleFlow(nn.Module):
    """The flow, asked in rows of values [N, columns] in the layout of its schema; NaN counts as the mean."""

    mean: Tensor
    std: Tensor
    examples: Tensor
    kept: Tensor

    def __init__(self, schema: Schema, dim: int, examples: Tensor, hidden: int | None = None) -> None:
        """``examples`` are the values of training latents: they scale the condition, and fill in what is not asked."""
        super().__init__()
        self.schema = schema
        # One class of each attribute is what the others leave.
        firsts = [schema.slice(a.name).start for a in schema if a.columns > 1]
        kept = torch.tensor([k for k in range(schema.columns) if k not in firsts])
        self.register_buffer("kept", kept, persistent=False)
        self.first, self.last = MovingNorm(dim), MovingNorm(dim)
        self.velocity = Velocity(dim, len(kept), hidden)
        self.root_time = nn.Parameter(torch.ones(()))
        whole = examples[examples.isfinite().all(dim=1)]
        self.register_buffer("mean", whole[:, kept].mean(dim=0))
        self.register_buffer("std", whole[:, kept].std(dim=0).clamp_min(1e-3))
        self.register_buffer("examples", examples)

    def condition(self, values: Tensor) -> Tensor:
        """Rows of values as the network takes them: one class of each attribute left out, standardised."""
        return ((values[:, self.kept] - self.mean) / self.std).nan_to_num()

    def encode(self, w: Tensor, values: Tensor, probes: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The noise z behind w given values, and log |dz/dw|: without ``probes`` [probes, N, dim] zero for the flow."""
        # A norm in training follows the batch once it has seen it.
        slope = self.first.log_slope.sum() + self.last.log_slope.sum()
        x, moved = self._flow(self.first(w), values, probes, forwards=True)
        return self.last(x), moved + slope

    def decode(self, z: Tensor, values: Tensor) -> Tensor:
        """The w that noise becomes given values: the inverse of :meth:`encode`."""
        return self.first.inverse(self._flow(self.last.inverse(z), values, None, forwards=False)[0])

    def log_prob(self, w: Tensor, values: Tensor, probes: Tensor) -> Tensor:
        """log p(w | values), unbiased for probes from N(0, I) and exact for :func:`unit_probes`."""
        z, slope = self.encode(w, values, probes)
        return slope - z.square().sum(dim=1) / 2 - z.shape[1] * math.log(2 * math.pi) / 2

    def _flow(self, x: Tensor, values: Tensor, probes: Tensor | None, forwards: bool) -> tuple[Tensor, Tensor]:
        """x at the other end of the flow, and the integral of the trace: solved side by side, as one more column."""
        c, time = self.condition(values), self.root_time.square()
        e = x.new_zeros(0, *x.shape) if probes is None else probes

        def speed(state: Tensor, s: Tensor, rows: Tensor) -> Tensor:
            # In units of T, so that T takes part in the gradient.
            t = time * (s if forwards else 1 - s)
            probe = e[:, rows]
            v, carried = self.velocity(state[:, :-1], t, c[rows], probe)
            trace = (probe * carried).sum(dim=(0, 2)) / max(len(e), 1)
            return (time if forwards else -time) * torch.cat([v, trace[:, None]], dim=1)

        start = F.pad(x, (0, 1))
        if self.training:
            end = march(speed, start, 1.0, STEPS)
        else:
            end = DormandPrince(TOLERANCE, TOLERANCE)(speed, start, 1.0)
        return end[:, :-1], end[:, -1]

    def sample(self, row: Tensor, seed: int, index: Tensor) -> Tensor:
        """w for the noise at addresses (seed, index), given a row of values; what it leaves free is from examples."""
        values = filled(row, self.examples, rng.uniform(seed, index))
        return self.decode(rng.normal(seed, index, len(self.first.mean)), values)

    def edit(self, w: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """w that showed the values ``source`` [N, columns], changed to show ``target``.

        w is [N, dim], or [N, styles, dim] with a row for each style of a generator: each goes its own way.
        """
        rows = w.flatten(0, -2)
        before, after = (values.repeat_interleave(len(rows) // len(w), dim=0) for values in (source, target))
        return self.decode(self.encode(rows, before)[0], after).view_as(w)

    def initialise(self, generator: torch.Generator) -> StyleFlow:
        """A start from which to train."""
        self.velocity.initialise(generator)
        return self

    def save(self, path: Path, card: dict[str, Any]) -> None:
        """Write the flow in half precision with a card; the schema travels in the card."""
        write_with_card(path, self.state_dict(), {**card, "schema": self.schema.to_json()})

    @classmethod
    def load(cls, path: Path) -> StyleFlow:
        """Read what :meth:`save` wrote."""
        card, state = read_with_card(path)
        try:
            hidden, dim = state["velocity.weights.0"].shape
            flow = cls(Schema.from_json(card["schema"]), dim, state["examples"].float(), hidden)
            flow.load_state_dict(state)
        except (KeyError, RuntimeError) as error:
            raise DataError(f"{path} does not hold a StyleFlow of this version ({error}).") from error
        return flow.requires_grad_(False).eval()


def unit_probes(n: int, dim: int) -> Tensor:
    """Probes [dim, n, dim] whose mean of e.J e is the trace itself: unit vectors, times the root of their number."""
    return (dim**0.5 * torch.eye(dim))[:, None].expand(dim, n, dim)


def fit(flow: StyleFlow, w: Tensor, values: Tensor, settings: Settings, report: Report | None = None) -> None:
    """Train in place by the mean of -log p(w | values), with Adam."""
    generator = torch.Generator(w.device).manual_seed(settings.seed)
    optimiser = torch.optim.Adam(flow.parameters(), settings.lr, fused=w.is_cuda)
    flow.train().requires_grad_(True)

    def drawn() -> tuple[Tensor, Tensor, Tensor]:
        rows = torch.randint(len(w), (settings.batch,), generator=generator, device=w.device)
        return w[rows], values[rows], torch.randn(1, *w[rows].shape, generator=generator, device=w.device)

    def slope(w: Tensor, values: Tensor, probes: Tensor) -> Tensor:
        optimiser.zero_grad(set_to_none=True)
        loss = -flow.log_prob(w, values, probes).mean()
        loss.backward()
        return loss.detach()

    learn = recorded(slope, *drawn())
    for step in steps(settings, optimiser):
        loss = sound(learn(*drawn()))
        optimiser.step()
        if report:
            report(step, loss)
    flow.eval().requires_grad_(False)
