"""``lace models`` and ``lace attributes``: what there is."""

from __future__ import annotations

import argparse
from typing import Any

from ..attributes import words
from ..attributes.card import read_card
from ..attributes.schema import Attribute, Continuous
from ..catalog import entries, find
from .common import cards_of, say, schema_of

__all__ = ["attributes", "models"]


def models(args: argparse.Namespace) -> None:
    """List the models."""
    rows, lines = [], []
    for entry in entries().values():
        known = [attribute.name for attribute in schema_of(entry.name)]
        facts = {
            "name": entry.name,
            "about": entry.about,
            "resolution": entry.resolution,
            "psi": entry.psi,
            "classes": entry.classes,
        }
        rows.append({**facts, "licence": entry.licence, "attributes": known})
        lines += [f"{entry.name:7s} {entry.about}, {entry.resolution}x{entry.resolution}"]
        listed = f"{len(known)} attributes: {', '.join(known)}" if known else "no words yet"
        lines += [f"{'':8s}{listed}", f"{'':8s}{entry.licence}"]
    say(args, {"models": rows}, lines)


def attributes(args: argparse.Namespace) -> None:
    """List the words of a model and how well each is read; take in or forget a taught one."""
    if args.add is not None:
        add(args)
    elif args.remove is not None:
        remove(args)
    else:
        show(args)


def show(args: argparse.Namespace) -> None:
    """The words, with what is known of each."""
    cards, schema = cards_of(args.model), schema_of(args.model)
    if not cards:
        say(
            args,
            {"model": args.model, "attributes": []},
            [f"{args.model} has no words yet; lace learn teaches it some."],
        )
        return
    measured = {name: row for card in cards for name, row in card["measured"].items()}
    taught_by = {card["schema"][0]["name"]: card["judge"] for card in cards if "judge" in card}
    rows = [{**row, "measured": measured[row["name"]]} for card in cards for row in card["schema"]]
    for row in rows:
        row |= {"taught_by": taught_by[row["name"]]} if row["name"] in taught_by else {}
    lines = [f"{a.name:15s}{values_of(a):39s} {quality(a, measured[a.name]):22s}{about(a, taught_by)}" for a in schema]
    say(args, {"model": args.model, "attributes": rows}, [f"{'word':15s}{'values':40s}{'heads are':22s}about", *lines])


def add(args: argparse.Namespace) -> None:
    """Take in a word that somebody gave."""
    model = find(args.model).name
    attribute = words.add(args.add, model, weights_of(model), schema_of(model))
    say(args, {"model": model, "added": attribute.name}, [f"'{attribute.name}' is a word of {model} now."])


def remove(args: argparse.Namespace) -> None:
    """Forget a taught word."""
    model = find(args.model).name
    words.remove(args.remove, model, [attribute.name for attribute in schema_of(model)])
    say(args, {"model": model, "removed": args.remove}, [f"'{args.remove}' is no word of {model} any more."])


def weights_of(model: str) -> str:
    """What words of a model were made for, from a card where there is one."""
    entry = find(model)
    if entry.heads is not None:
        return str(read_card(entry.heads)["model"])
    return entry.load_generator(entry.psi).weights_identity


def about(attribute: Attribute, taught_by: dict[str, Any]) -> str:
    """What a word means; of a taught one also who said so."""
    if attribute.name not in taught_by:
        return attribute.about
    return f"{attribute.about} (taught by {taught_by[attribute.name]['name']})".strip()


def values_of(attribute: Attribute) -> str:
    if isinstance(attribute, Continuous):
        return f"{attribute.low:g} .. {attribute.high:g} {attribute.unit}".strip()
    return "yes, no" if attribute.is_yes_no else ", ".join(attribute.classes)


def quality(attribute: Attribute, row: dict[str, float]) -> str:
    if isinstance(attribute, Continuous):
        return f"within {row['mae']:.2g} {attribute.unit}".strip()
    return f"right in {100 * row['accuracy']:.1f} %"
