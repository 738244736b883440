"""Training heads on labelled latents, and measuring what they have learned.

    discrete:    - sum_c y_c log softmax(l)_c       y are soft labels and stay soft
    continuous:  (y - f)^2 / (2 * 0.1^2)            the paper's energy, on labels scaled to [0, 1]

Labels are one matrix [N, columns] in the schema's layout: class probabilities, or a scaled number; NaN where unknown.
A row counts as often as its weight says, once where there are no weights. Every network of a head file sees the same
batches from its own start. Afterwards, on latents held out: a temperature for each discrete attribute (the likelihood
of its labels) and the residual sigma of each continuous one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from .heads import MlpHeads, mix
from .schema import Attribute, Continuous, Discrete, Schema

__all__ = [
    "Settings",
    "Split",
    "Standardised",
    "binary_temperature",
    "calibrate",
    "fit",
    "hardened",
    "likeliest_temperature",
    "measure",
    "teach",
]

ENERGY_SIGMA = 0.1


@dataclass(frozen=True)
class Settings:
    """How heads are trained."""

    epochs: int = 50
    batch: int = 512
    lr: float = 1e-3
    weight_decay: float = 0.05
    seed: int = 0


class Split(NamedTuple):
    """Which rows train, which calibrate, and which measure."""

    train: Tensor
    calibrate: Tensor
    measure: Tensor

    @classmethod
    def at_the_end(cls, rows: Tensor, calibrate: int, measure: int) -> Split:
        """The last rows measure, those before them calibrate."""
        kept = len(rows) - calibrate - measure
        return cls(*rows.split([kept, calibrate, measure]))


@dataclass(frozen=True)
class Standardised:
    """w shifted and scaled to zero mean and unit variance, a change that is folded into the first layer afterwards."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, w: Tensor) -> Standardised:
        return cls(w.mean(dim=0), w.std(dim=0).clamp_min(1e-6))

    def __call__(self, w: Tensor) -> Tensor:
        return (w - self.mean) / self.std

    @torch.no_grad()
    def fold_into(self, heads: MlpHeads) -> None:
        """heads(standardised w) becomes heads(w)."""
        weight, bias = heads.weights[0], heads.biases[0]
        weight /= self.std[None, :, None]
        bias -= torch.einsum("i,mio->mo", self.mean, weight)[:, None]


def loss(heads: MlpHeads, w: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """The sum over networks and the attributes they speak for of the mean loss over the rows with a label."""
    logits, total = heads.logits(w), torch.zeros((), device=w.device)
    counts = torch.ones(len(w), 1, device=w.device) if weights is None else weights[:, None]
    for width, members in by_width(heads.schema).items():
        columns = torch.tensor([[start + k for k in range(width)] for _, start in members], device=w.device)
        own, truth = logits[:, :, columns], labels[:, columns]
        known = truth[..., 0].isfinite() * counts
        each = _energy(own, truth) if width == 1 else _soft_error(own, truth)
        means = (each * known).sum(dim=1) / known.sum(dim=0).clamp_min(1e-6)
        total = total + (means * heads.speakers[:, [k for k, _ in members]]).sum()
    return total


def by_width(schema: Schema) -> dict[int, list[tuple[int, int]]]:
    """Attributes with equally many columns, as (number, first column): their losses are worked out together."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for k, attribute in enumerate(schema):
        groups.setdefault(attribute.columns, []).append((k, schema.slice(attribute.name).start))
    return groups


def _soft_error(logits: Tensor, labels: Tensor) -> Tensor:
    return -(labels.nan_to_num() * logits.log_softmax(dim=-1)).sum(dim=-1)


def _energy(values: Tensor, labels: Tensor) -> Tensor:
    return (values - labels.nan_to_num())[..., 0].square() / (2 * ENERGY_SIGMA**2)


def fit(
    heads: MlpHeads,
    w: Tensor,
    labels: Tensor,
    settings: Settings,
    report: Callable[[int, float], None] | None = None,
    weights: Tensor | None = None,
) -> None:
    """Train in place with AdamW and a cosine schedule; ``report(epoch, loss)`` is called after every epoch."""
    standardise = Standardised.of(w)
    x = standardise(w)
    rng = torch.Generator().manual_seed(settings.seed)
    optimiser = torch.optim.AdamW(
        heads.parameters(), lr=settings.lr, weight_decay=settings.weight_decay, fused=w.is_cuda
    )
    steps = settings.epochs * math.ceil(len(w) / settings.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    heads.train().requires_grad_(True)
    for epoch in range(settings.epochs):
        total = torch.zeros((), device=w.device)
        for rows in torch.randperm(len(w), generator=rng).to(w.device).split(settings.batch):
            optimiser.zero_grad(set_to_none=True)
            error = loss(heads, x[rows], labels[rows], None if weights is None else weights[rows])
            error.backward()
            optimiser.step()
            schedule.step()
            total += error.detach() * len(rows) / len(w)
        if report:
            report(epoch, float(total) / len(heads.speakers))
    heads.eval().requires_grad_(False)
    standardise.fold_into(heads)


def minimise(objective: Callable[[Tensor], Tensor], low: float = -3.0, high: float = 3.0) -> float:
    """The minimum of a function with one valley, by golden sections."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = low, high
    for _ in range(40):
        left, right = b - ratio * (b - a), a + ratio * (b - a)
        if objective(torch.tensor(left)) < objective(torch.tensor(right)):
            b = right
        else:
            a = left
    return (a + b) / 2


def binary_temperature(logits: Tensor, labels: Tensor) -> Tensor:
    """The T that makes sigmoid(logits / T) likeliest for labels in [0, 1]."""
    error = torch.nn.functional.binary_cross_entropy_with_logits
    return torch.tensor(math.exp(minimise(lambda log_t: error(logits / log_t.exp(), labels))))


def hardened(labels: Tensor, schema: Schema) -> Tensor:
    """The same labels with all of a discrete attribute's probability on its likeliest class."""
    hard = labels.clone()
    for attribute in schema:
        columns = schema.slice(attribute.name)
        if isinstance(attribute, Discrete):
            one_hot = torch.nn.functional.one_hot(labels[:, columns].argmax(dim=1), attribute.columns)
            hard[:, columns] = torch.where(labels[:, columns].isfinite(), one_hot.to(labels), labels[:, columns])
    return hard


@torch.no_grad()
def calibrate(heads: MlpHeads, w: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
    """Set temperatures and sigmas from held-out latents."""
    logits = heads.logits(w).float()
    attributes: list[Attribute] = []
    for k, attribute in enumerate(heads.schema):
        columns = heads.schema.slice(attribute.name)
        known = labels[:, columns.start].isfinite()
        counts = torch.ones_like(labels[known, 0]) if weights is None else weights[known]
        own = logits[heads.speakers[:, k] > 0][:, known, columns]
        if isinstance(attribute, Discrete):
            heads.temperature[k] = likeliest_temperature(own, labels[known, columns], counts)
            attributes.append(attribute)
        else:
            residual = (own.mean(dim=0) - labels[known, columns])[:, 0]
            attributes.append(replace(attribute, sigma=float(_mean(residual.square(), counts).sqrt()) * attribute.span))
    heads.schema = Schema(attributes)


def _mean(values: Tensor, counts: Tensor) -> Tensor:
    return (values * counts).sum() / counts.sum()


def likeliest_temperature(logits: Tensor, labels: Tensor, counts: Tensor) -> float:
    """The T at which the mean of softmax(logits / T) over networks [M, N, C] makes labels [N, C] likeliest."""

    def error(log_t: Tensor) -> Tensor:
        return -_mean((labels * mix(logits / log_t.exp())).sum(dim=1), counts)

    return math.exp(minimise(error))


@torch.no_grad()
def measure(heads: MlpHeads, w: Tensor, labels: Tensor, weights: Tensor | None = None) -> dict[str, dict[str, float]]:
    """Held-out figures of each attribute: accuracy and calibration error, or mean absolute error and R2."""
    readings = heads(w)
    counts = torch.ones(len(w), device=w.device) if weights is None else weights
    return {
        a.name: _measure_one(a, readings[:, heads.schema.slice(a.name)], labels[:, heads.schema.slice(a.name)], counts)
        for a in heads.schema
    }


def _measure_one(
    attribute: Discrete | Continuous, readings: Tensor, labels: Tensor, counts: Tensor
) -> dict[str, float]:
    known = labels[:, 0].isfinite()
    readings, labels, counts = readings[known], labels[known], counts[known]
    if isinstance(attribute, Continuous):
        error, centred = (readings - labels)[:, 0], (labels[:, 0] - _mean(labels[:, 0], counts)).square()
        explained = 1 - _mean(error.square(), counts) / _mean(centred, counts)
        return {"mae": float(_mean(error.abs(), counts)) * attribute.span, "r2": float(explained)}
    classes, named = labels.argmax(dim=1), readings.argmax(dim=1)
    right = (named == classes).float()
    shares = torch.zeros(attribute.columns, device=labels.device).index_add_(0, classes, counts) / counts.sum()
    recalls = [_mean(right[classes == c], counts[classes == c]) for c in classes.unique()]
    confidence, likely = readings.max(dim=1).values.exp(), labels.gather(1, named[:, None])[:, 0]
    return {
        "accuracy": float(_mean(right, counts)),
        "balanced": float(torch.stack(recalls).mean()),
        "ece": expected_calibration_error(confidence, likely, counts),
        "commonest": float(shares.max()),
    }


def expected_calibration_error(
    confidence: Tensor, right: Tensor, counts: Tensor | None = None, bins: int = 15
) -> float:
    """Mean over bins of |confidence - how likely it was right|, weighted by how many fall into each."""
    counts = torch.ones_like(confidence) if counts is None else counts
    place = (confidence * bins).long().clamp(max=bins - 1)
    gaps = torch.zeros(bins, device=confidence.device).index_add_(0, place, counts * (confidence - right.float()))
    return float(gaps.abs().sum() / counts.sum())


def teach(
    heads: MlpHeads, w: Tensor, labels: Tensor, split: Split, settings: Settings, weights: Tensor | None = None
) -> dict[str, dict[str, float]]:
    """Train, calibrate and measure in place, each on rows of its own; the figures, and what was calibrated.

    Figures are those of the weights as they are stored, in half precision.
    """
    counts = torch.ones(len(w), device=w.device) if weights is None else weights
    fit(heads, w[split.train], labels[split.train], settings, weights=counts[split.train])
    calibrate(heads, w[split.calibrate], labels[split.calibrate], counts[split.calibrate])
    heads.half().float()
    rows = measure(heads, w[split.measure], labels[split.measure], counts[split.measure])
    for temperature, a in zip(heads.temperature, heads.schema, strict=True):
        rows[a.name] |= {"sigma": a.sigma} if isinstance(a, Continuous) else {"temperature": float(temperature)}
    return rows
