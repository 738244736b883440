"""``lace explain``: what a sentence means, how likely it is, and how it would be drawn."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from .common import chosen, duration, interval, load, say, understood, wishes

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["explain"]


def explain(args: argparse.Namespace) -> None:
    """Say what a sentence means, how likely it is, and how it would be drawn."""
    understood(args)
    from ..planning import percent
    from ..report import explain_report

    model = load(args.model, args)
    explanation = model.explain(args.sentence, args.n, **wishes(args))
    draw, picture = measured_speed(model)
    expected = args.n * (explanation.plan.draws_each * draw + picture)
    report = explain_report(args.sentence, explanation, model)
    report["expected"] = {"n": args.n, "draws": args.n * explanation.plan.draws_each, "seconds": expected}
    lines = [str(explanation.formula), interval(explanation.probability)]
    lines += [f"  {percent(p):>8s}  {term}" for term, p in explanation.terms.items()]
    lines += [chosen(explanation.plan)]
    lines += [
        f"{args.n} pictures would take about {duration(expected)}, {duration(args.n * picture)} of it for the pictures"
    ]
    say(args, report, lines)


def measured_speed(model: Model) -> tuple[float, float]:
    """Seconds for one draw and for one picture, here and now."""
    import torch

    index = torch.arange(2048, device=model.device) + len(model.bank.readings)
    w = model.at(["0:0"]).w
    next(model.pictures(w))
    with torch.inference_mode():
        start = time.perf_counter()
        model.read(model.generator.prior(0, index)).sum().item()
        middle = time.perf_counter()
        next(model.pictures(w))
    return (middle - start) / len(index), time.perf_counter() - middle
