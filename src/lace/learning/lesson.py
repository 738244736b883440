"""One lesson: labels become a head that is trained, calibrated, measured, and refused if it is no better than chance.

Of ten labelled draws seven train, one calibrates and two measure; every draw counts by its weight. The test on what was
held out:

    classes:  the mean over classes of P(a picture of the class gets a higher p(c | w) than one of another), the AUC
    numbers:  R2 = 1 - E (f - y)^2 / Var y

The low end of its 95 % interval must lie above 0.55 (chance is 0.5), or above 0.05 (chance is 0).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..attributes.heads import MlpHeads
from ..attributes.linear_start import start_from_ridge
from ..attributes.schema import Attribute, Continuous, Discrete, Schema
from ..attributes.training import Settings, Split, Standardised, teach
from ..errors import UnreadableWord
from ..metrics.bootstrap import interval

__all__ = ["FEWEST", "Labelled", "Lesson", "base_rate", "learn_from", "quick_heads", "shares"]

MEMBERS = 3
AUC_BAR, R2_BAR = 0.55, 0.05
# Fewer labels than this teach nothing; fewer of one class leave nothing to measure it on.
FEWEST, FEWEST_OF_A_CLASS = 50, 20
# More labels than this outside a number's range mean that the range is wrong.
MOST_OUTSIDE = 0.2
# Held-out rows past these hardly narrow the interval.
TESTED = 5000


@dataclass(frozen=True)
class Labelled:
    """w [N, d], labels [N, columns] in the schema's layout with NaN where unknown, and how much each row counts."""

    w: Tensor
    labels: Tensor
    weights: Tensor

    def known(self) -> Labelled:
        rows = self.labels[:, 0].isfinite()
        return Labelled(self.w[rows], self.labels[rows], self.weights[rows])


@dataclass(frozen=True)
class Lesson:
    """A head that passed, and what is known of it."""

    heads: MlpHeads
    figures: dict[str, Any]


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Matrices so small gain little from a second core, and lose minutes where other processes want it too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def settings(n: int) -> Settings:
    """Smaller batches for fewer rows, and steps enough for many."""
    return Settings(epochs=20, batch=min(max(n // 10, 32), 512 if n > 10_000 else 128), lr=5e-4, weight_decay=0.1)


def untrained(attribute: Attribute, data: Labelled, rows: Tensor, members: int) -> MlpHeads:
    heads = MlpHeads(Schema([attribute]), data.w.shape[1], torch.ones(members, 1)).to(data.w.device)
    heads.initialise(torch.Generator(data.w.device).manual_seed(0))
    w = data.w[rows]
    start_from_ridge(heads, Standardised.of(w)(w), data.labels[rows], data.weights[rows])
    return heads


def quick_heads(attribute: Attribute, data: Labelled) -> MlpHeads:
    """One network, uncalibrated: good enough to say where to look next."""
    rows = torch.arange(len(data.w), device=data.w.device)
    brief = replace(settings(len(rows)), epochs=10)
    with one_thread():
        heads = untrained(attribute, data, rows, 1)
        teach(heads, data.w, data.labels, Split(rows, rows, rows), brief, data.weights)
    return heads


def split(n: int, device: torch.device) -> Split:
    """Of ten rows seven, one and two, wherever they come from."""
    rows = torch.arange(n, device=device)
    return Split(rows[rows % 10 < 7], rows[rows % 10 == 7], rows[rows % 10 > 7])


def learn_from(attribute: Attribute, data: Labelled) -> Lesson:
    """Teach a head one word, or refuse with the reason."""
    data = data.known()
    check_labels(attribute, data)
    rows = split(len(data.w), data.w.device)
    chosen = settings(len(rows.train))
    with one_thread():
        heads = untrained(attribute, data, rows.train, MEMBERS)
        measured = teach(heads, data.w, data.labels, rows, chosen, data.weights)[attribute.name]
    test = tested(attribute, heads, data, rows.measure)
    if test["low"] <= test["bar"]:
        raise UnreadableWord(refusal(attribute, test, len(rows.measure)))
    counts = {name: len(part) for name, part in rows._asdict().items()}
    facts = {"members": MEMBERS, "epochs": chosen.epochs, "batch": chosen.batch, "lr": chosen.lr}
    return Lesson(heads.signed(), {"measured": measured, "test": test, "rows": counts, "settings": facts})


def shares(attribute: Discrete, data: Labelled) -> tuple[Tensor, Tensor]:
    """How common each class is among all draws, and how many of it were labelled."""
    data = data.known()
    seen = data.labels.argmax(dim=1).bincount(minlength=attribute.columns)
    return (data.labels * data.weights[:, None]).sum(dim=0) / data.weights.sum(), seen


def check_labels(attribute: Attribute, data: Labelled) -> None:
    """Refuse what no head could learn from or be measured on."""
    n, name = len(data.w), attribute.name
    if n < FEWEST:
        raise UnreadableWord(f"'{name}' has {n} labels; {FEWEST} are the fewest to learn from. Label more.")
    if isinstance(attribute, Continuous):
        if float(data.labels.std()) * attribute.span <= 1e-6 * attribute.span:
            raise UnreadableWord(f"Every picture was given the same number for '{name}': there is nothing to learn.")
        outside = float(((data.labels < 0) | (data.labels > 1)).float().mean())
        if outside > MOST_OUTSIDE:
            raise UnreadableWord(
                f"{100 * outside:.0f} % of the labels of '{name}' lie outside {attribute.low:g} to {attribute.high:g}; "
                "give the range that its numbers have."
            )
        return
    share, seen = shares(attribute, data)
    if int(seen.min()) < FEWEST_OF_A_CLASS:
        k = int(seen.argmin())
        estimate = "none" if int(seen[k]) == 0 else f"about {100 * float(share[k]):.2g} % of all draws"
        raise UnreadableWord(
            f"'{name}' cannot be judged: {int(seen[k])} of {n} labelled pictures are '{attribute.classes[k]}' "
            f"({estimate}), and {FEWEST_OF_A_CLASS} are needed. Label more pictures with -n, or draw the line between "
            "classes elsewhere."
        )


def tested(attribute: Attribute, heads: MlpHeads, data: Labelled, rows: Tensor) -> dict[str, Any]:
    """The figure that decides, with its interval on held-out rows."""
    rows = rows[:TESTED]
    with torch.no_grad():
        table = torch.cat([heads(data.w[rows]), data.labels[rows], data.weights[rows, None]], dim=1).double().cpu()
    is_number = isinstance(attribute, Continuous)
    figure = weighted_r2 if is_number else mean_auc
    low, high = interval(table, figure)
    name, bar, chance = ("R2", R2_BAR, 0.0) if is_number else ("AUC", AUC_BAR, 0.5)
    value = float(figure(table[None])[0])
    return {"figure": name, "value": value, "low": low, "high": high, "bar": bar, "chance": chance}


def refusal(attribute: Attribute, test: dict[str, Any], n: int) -> str:
    how = "names its classes" if isinstance(attribute, Discrete) else "foretells the number"
    return (
        f"'{attribute.name}' cannot be read from this model's latents: on {n} held-out pictures the head {how} with "
        f"{test['figure']} {test['value']:.2f} (95 % interval {test['low']:.2f} to {test['high']:.2f}; guessing gives "
        f"{test['chance']:g}, and the low end must pass {test['bar']:g}). Either the labels are noise, or the pictures "
        "show what the latents do not decide; more pictures (-n) help only if the interval is wide."
    )


def weighted_r2(tables: Tensor) -> Tensor:
    """R2 of tables [B, N, (reading, label, weight)]."""
    reading, label, weight = tables.unbind(dim=-1)
    total = weight.sum(dim=1, keepdim=True)
    centred = label - (weight * label).sum(dim=1, keepdim=True) / total
    left = (weight * (reading - label).square()).sum(dim=1)
    return 1 - left / (weight * centred.square()).sum(dim=1).clamp_min(1e-12)


def mean_auc(tables: Tensor) -> Tensor:
    """The mean over classes of the weighted AUC, of tables [B, N, (readings, labels, weight)]."""
    columns = (tables.shape[-1] - 1) // 2
    readings, labels, weight = tables.split([columns, columns, 1], dim=-1)
    named = labels.argmax(dim=-1)
    each = [auc(readings[..., c], weight[..., 0] * (named == c), weight[..., 0] * (named != c)) for c in range(columns)]
    # A resample without one of the classes says nothing of it.
    return torch.stack(each).nan_to_num(0.5).mean(dim=0)


def auc(score: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """P(score of a positive > score of a negative), rows weighted; equal scores count half."""
    order = score.argsort(dim=-1)
    ranked, up, down = (values.gather(-1, order) for values in (score, positive, negative))
    below = down.cumsum(dim=-1)
    first = torch.searchsorted(ranked.contiguous(), ranked.contiguous())
    last = torch.searchsorted(ranked.contiguous(), ranked.contiguous(), right=True)
    padded = torch.cat([torch.zeros_like(below[..., :1]), below], dim=-1)
    beaten = (padded.gather(-1, first) + padded.gather(-1, last)) / 2
    return (up * beaten).sum(dim=-1) / (up.sum(dim=-1) * down.sum(dim=-1))


def base_rate(attribute: Attribute, data: Labelled) -> dict[str, Any]:
    """How common each class is among all draws, or the mean number, with 95 % intervals (linearised)."""
    data = data.known()
    v = data.weights.double() / data.weights.double().sum()
    columns = ("value",) if isinstance(attribute, Continuous) else attribute.classes
    out: dict[str, Any] = {}
    for name, y in zip(columns, data.labels.double().T, strict=True):
        if isinstance(attribute, Continuous):
            y = attribute.low + attribute.span * y
        mean = float((v * y).sum())
        error = 1.96 * math.sqrt(float((v.square() * (y - mean).square()).sum()))
        ends = [mean - error, mean + error]
        out[name] = {"mean": mean, "interval": ends if name == "value" else [max(ends[0], 0.0), min(ends[1], 1.0)]}
    return out
