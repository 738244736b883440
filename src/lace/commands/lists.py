"""``lace models`` and ``lace attributes``: what there is."""

from __future__ import annotations

import argparse

from ..attributes.card import read_card
from ..attributes.schema import Attribute, Continuous
from ..catalog import entries, find
from .common import say, schema_of

__all__ = ["attributes", "models"]


def models(args: argparse.Namespace) -> None:
    """List the models."""
    rows, lines = [], []
    for entry in entries().values():
        words = [attribute.name for attribute in schema_of(entry.heads)]
        facts = {
            "name": entry.name,
            "about": entry.about,
            "resolution": entry.resolution,
            "psi": entry.psi,
            "classes": entry.classes,
        }
        rows.append({**facts, "licence": entry.licence, "attributes": words})
        lines += [f"{entry.name:7s} {entry.about}, {entry.resolution}x{entry.resolution}"]
        known = f"{len(words)} attributes: {', '.join(words)}" if words else "no words yet"
        lines += [f"{'':8s}{known}", f"{'':8s}{entry.licence}"]
    say(args, {"models": rows}, lines)


def attributes(args: argparse.Namespace) -> None:
    """List the words of a model, and how well its heads know each."""
    heads = find(args.model).heads
    if heads is None:
        return say(args, {"model": args.model, "attributes": []}, [f"{args.model} has no words yet."])
    card, schema = read_card(heads), schema_of(heads)
    measured = card["measured"]
    rows = [{**row, "measured": measured[row["name"]]} for row in card["schema"]]
    lines = [f"{a.name:15s}{values_of(a):40s}{quality(a, measured[a.name]):22s}{a.about}" for a in schema]
    return say(
        args, {"model": args.model, "attributes": rows}, [f"{'word':15s}{'values':40s}{'heads are':22s}about", *lines]
    )


def values_of(attribute: Attribute) -> str:
    if isinstance(attribute, Continuous):
        return f"{attribute.low:g} .. {attribute.high:g} {attribute.unit}".strip()
    return "yes, no" if attribute.is_yes_no else ", ".join(attribute.classes)


def quality(attribute: Attribute, row: dict[str, float]) -> str:
    if isinstance(attribute, Continuous):
        return f"within {row['mae']:.2g} {attribute.unit}".strip()
    return f"right in {100 * row['accuracy']:.1f} %"
