"""What commands share: printing for people or programs, a model from options, and words for numbers."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..attributes.card import read_card
from ..attributes.schema import Continuous, Schema
from ..attributes.words import files_of
from ..catalog import find
from ..conditions.language import parse
from ..samplers.strictness import Strictness

if TYPE_CHECKING:
    from ..bank import Estimate
    from ..model import Model
    from ..planning import Plan, Wishes

__all__ = [
    "Stopwatch",
    "cards_of",
    "chosen",
    "duration",
    "in_words",
    "interval",
    "likely",
    "load",
    "say",
    "schema_of",
    "understood",
    "wishes",
]


# M_MMAP_MAX: no allocation is mapped apart; M_TRIM_THRESHOLD: nothing is given back (malloc.h of glibc).
MALLOC = ((-4, 0), (-1, 2**31 - 1))


def say(args: argparse.Namespace, report: dict[str, Any], lines: Iterable[str]) -> None:
    """Print the report as JSON, or the lines for people."""
    print(json.dumps(report) if args.json else "\n".join(lines))


def cards_of(model: str) -> list[dict[str, Any]]:
    """The cards of a model's heads: those that ship first, then those of words that it was taught."""
    entry = find(model)
    return [read_card(path) for path in files_of(entry.heads, entry.name)]


def schema_of(model: str) -> Schema:
    """The words of a model."""
    return Schema(attribute for card in cards_of(model) for attribute in Schema.from_json(card["schema"]))


def understood(args: argparse.Namespace) -> None:
    """Refuse what cannot be drawn before anything is downloaded or loaded for it."""
    parse(args.sentence, schema_of(args.model))
    Strictness.of(args.strictness)
    from ..planning import Wish

    Wish(**wishes(args))


def load(name: str, args: argparse.Namespace, psi: float | None = None, label: int | None = None) -> Model:
    """The model that a command works with; --psi and --label go before what a folder remembers."""
    from .. import model

    keep_freed_memory()
    label = args.label if args.label is not None else label
    chosen = {} if label is None else {"label": label}
    return model.load(name, args.device, args.psi if args.psi is not None else psi, **chosen)


def keep_freed_memory() -> None:
    """Let glibc keep what is freed: a picture's layers come and go by the hundred megabytes, and on a CPU much of its
    time would go into fetching each afresh from the kernel."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        for option, value in MALLOC:
            libc.mallopt(option, value)


def wishes(args: argparse.Namespace) -> Wishes:
    """How the sentence shall be drawn."""
    return {
        "sampler": args.sampler,
        "strictness": args.strictness,
        "reading": args.reading,
        "max_draws": args.max_draws,
    }


class Stopwatch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start


def in_words(values: dict[str, Any], schema: Schema) -> str:
    """A picture in words: what is likely, and the numbers that have a unit."""
    words = []
    for attribute in schema:
        value = values[attribute.name]
        if isinstance(attribute, Continuous):
            words += [f"{attribute.name} {value:.0f}"] if attribute.unit else []
        elif attribute.is_yes_no:
            words += [attribute.name] if value > 0.5 else []
        else:
            words.append(max(value, key=lambda key: value[key]))
    return ", ".join(words)


def chosen(plan: Plan) -> str:
    """A sampler and why it was taken."""
    return f"{plan.sampler.name}: {plan.why}"


def likely(estimate: Estimate) -> str:
    """P = 3 %, or P < 1e-6."""
    from ..planning import percent

    value = percent(estimate.probability)
    return f"P {value}" if value.startswith("<") else f"P = {value}"


def interval(estimate: Estimate) -> str:
    from ..planning import percent

    return f"{likely(estimate)}  (95 % interval {percent(estimate.low)} to {percent(estimate.high)})"


def duration(value: float) -> str:
    return f"{value:.2g} s" if value < 100 else f"{value:.0f} s"
