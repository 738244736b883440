"""Latent-JEM: a classifier of w whose logits are an energy too (the paper's baseline, after Grathwohl et al., 2020).

    E(w, c) = sum_classes -f[c]  +  sum_numbers (c - f)^2 / (2 sigma^2),   sigma = 0.1,   what is free summed over:
    E(w)    = - sum_classes log sum_c exp f[c]
    loss    = cross entropy + (c - f)^2 / (2 sigma^2) + E(w+) - E(w-),   w+ a labelled latent, w- a walk's end
    walk:     w <- w - eta grad E + noise v,   v ~ N(0, I)

A walk in training goes down E(w), one that draws given c goes down E(w, c). It starts at the mapping of noise, which is
the paper's way on faces, or in a buffer of ends of former walks, a few of which start afresh: its way on CIFAR-10.
The paper writes eta / 2 for the slope's factor and its authors' code has eta, as JEM's has: that is taken here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import rng
from ..attributes.card import read_with_card, write_with_card
from ..attributes.heads import MlpHeads
from ..attributes.schema import Discrete, Schema
from ..attributes.training import ENERGY_SIGMA
from ..attributes.training import loss as class_loss
from ..errors import DataError
from ..samplers.base import Noise
from .training import Report, Settings, descend, recorded, steps

__all__ = ["Fresh", "LatentJem", "Replay", "Walks", "fit", "uniform"]

# Starts of walks [n, dim].
Fresh = Callable[[int, torch.Generator], Tensor]


@dataclass(frozen=True)
class Walks:
    """How walks go: the paper takes eta = 0.1 or 0.01."""

    eta: float = 0.1
    steps: int = 200
    noise: float = 0.01


@dataclass(frozen=True)
class Replay:
    """A buffer of walks that go on; ``renewed`` of those taken out of it start afresh."""

    size: int = 10_000
    renewed: float = 0.05


class LatentJem(nn.Module):
    """The network, asked in rows of values in the layout of its schema; what is NaN is free.

    ``buffer`` [size, dim] holds the ends of walks to go on from; it is empty where walks start at the mapping of noise.
    """

    buffer: Tensor
    table: Tensor
    is_class: Tensor

    def __init__(self, schema: Schema, dim: int, walks: Walks, size: int = 0) -> None:
        super().__init__()
        self.schema, self.walks = schema, walks
        self.heads = MlpHeads(schema, dim, torch.ones(1, len(schema)))
        self.register_buffer("buffer", torch.zeros(size, dim))
        discrete = [attribute for attribute in schema if isinstance(attribute, Discrete)]
        columns = [list(range(schema.columns))[schema.slice(attribute.name)] for attribute in discrete]
        if not columns:
            raise DataError("Latent-JEM needs an attribute with classes: numbers alone give w no energy.")
        # The columns of each attribute's classes, filled up with one past the last, where minus infinity is put.
        widest = max(map(len, columns))
        table = [row + [schema.columns] * (widest - len(row)) for row in columns]
        self.register_buffer("table", torch.tensor(table, dtype=torch.long), persistent=False)
        is_class = torch.zeros(schema.columns, dtype=torch.bool)
        is_class[[column for row in columns for column in row]] = True
        self.register_buffer("is_class", is_class, persistent=False)

    def energy(self, w: Tensor, values: Tensor | None = None) -> Tensor:
        """E of w [N, dim] and the values [columns] or [N, columns] given; what is free is summed over.

        Without values all is free, as it is two hundred times in each step of training.
        """
        logits = self.heads.logits(w)[0]
        padded = torch.cat([logits, logits.new_full((len(w), 1), -torch.inf)], dim=1)
        free = padded.index_select(1, self.table.flatten()).unflatten(1, self.table.shape).logsumexp(dim=2)
        if values is None:
            return -free.sum(dim=1)
        given, wanted = values.isfinite(), values.nan_to_num()
        of_classes = (free * ~given[..., self.table[:, 0]]).sum(dim=1) + (wanted * logits * self.is_class).sum(dim=1)
        of_numbers = ((logits - wanted).square() * (given & ~self.is_class)).sum(dim=1)
        return of_numbers / (2 * ENERGY_SIGMA**2) - of_classes

    def walk(self, w: Tensor, values: Tensor | None, noise: Callable[[int], Tensor]) -> Tensor:
        """The ends of walks from w; ``noise(step)`` gives normal numbers [N, dim]."""
        w = w.clone()
        for step in range(self.walks.steps):
            with torch.enable_grad():
                w.requires_grad_()
                (slope,) = torch.autograd.grad(self.energy(w, values).sum(), w)
            w = w.detach() - self.walks.eta * slope + self.walks.noise * noise(step)
        return w

    def sample(self, row: Tensor, w: Tensor, seed: int, index: Tensor) -> Tensor:
        """Walks from w [N, dim] down E(w, row), with the noise of addresses (seed, index)."""
        return self.walk(w, row, lambda step: Noise(seed, index, step).normal(w.shape[1]))

    def remembered(self, seed: int, index: Tensor) -> Tensor:
        """Starts out of the buffer, one for each address."""
        return self.buffer[((1 - rng.uniform(seed, index)) * len(self.buffer)).long()]

    def save(self, path: Path, card: dict[str, Any]) -> None:
        """Write the network and the buffer in half precision with a card."""
        write_with_card(path, self.state_dict(), {**card, "schema": self.schema.to_json(), "walks": asdict(self.walks)})

    @classmethod
    def load(cls, path: Path) -> LatentJem:
        """Read what :meth:`save` wrote."""
        card, state = read_with_card(path)
        try:
            size, dim = state["buffer"].shape
            jem = cls(Schema.from_json(card["schema"]), dim, Walks(**card["walks"]), size)
            jem.load_state_dict(state)
        except (KeyError, RuntimeError, TypeError) as error:
            raise DataError(f"{path} does not hold a Latent-JEM of this version ({error}).") from error
        return jem.requires_grad_(False).eval()


def uniform(w: Tensor) -> Fresh:
    """Starts anywhere in the box that latents span."""
    low, high = w.amin(dim=0), w.amax(dim=0)
    return lambda n, random: low + (high - low) * torch.rand(n, len(low), generator=random, device=random.device)


def fit(
    jem: LatentJem,
    w: Tensor,
    labels: Tensor,
    fresh: Fresh,
    settings: Settings,
    replay: Replay | None = None,
    report: Report | None = None,
) -> None:
    """Train in place with Adam on labelled latents; ``fresh(n, generator)`` gives starts of walks."""
    generator = torch.Generator(w.device).manual_seed(settings.seed)
    optimiser = torch.optim.Adam(jem.heads.parameters(), settings.lr, fused=w.is_cuda)
    if replay:
        jem.buffer = fresh(replay.size, generator)
    jem.train().requires_grad_(True)
    shape = (jem.walks.steps, settings.batch, w.shape[1])
    example = fresh(settings.batch, generator), torch.zeros(shape, device=w.device)
    free = recorded(lambda starts, noise: jem.walk(starts, None, lambda step: noise[step]), *example)
    for step in steps(settings, optimiser):
        rows = torch.randint(len(w), (settings.batch,), generator=generator, device=w.device)
        starts, places = _starts(jem, fresh(settings.batch, generator), replay, generator)
        ends = free(starts, torch.randn(shape, generator=generator, device=w.device))
        if replay:
            jem.buffer[places] = ends
        contrast = jem.energy(w[rows]).mean() - jem.energy(ends).mean()
        loss = descend(class_loss(jem.heads, w[rows], labels[rows]) + contrast, optimiser)
        if report:
            report(step, loss)
    jem.eval().requires_grad_(False)


def _starts(jem: LatentJem, fresh: Tensor, replay: Replay | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Where walks start, and the places of the buffer that they start from: none without a buffer."""
    n, device = len(fresh), fresh.device
    if not replay:
        return fresh, torch.arange(0, device=device)
    places = torch.randperm(replay.size, generator=generator, device=device)[:n]
    anew = torch.rand(n, 1, generator=generator, device=device) < replay.renewed
    return torch.where(anew, fresh, jem.buffer[places]), places
