"""``lace import``: a checkpoint becomes a model by its name, without running a line of it."""

from __future__ import annotations

import argparse

from .common import say

__all__ = ["import_"]


def import_(args: argparse.Namespace) -> None:
    """Make a checkpoint a model, and say what was found in it."""
    from ..catalog import import_model
    from ..weights.imported import cards, place_of

    entry = import_model(args.file, args.name)
    card = cards()[entry.name]
    config = card["config"]
    facts = {
        "name": entry.name,
        "kind": card["kind"],
        "resolution": entry.resolution,
        "z": config["mapping"][0],
        "w": config["mapping"][-1],
        "mapping_layers": len(config["mapping"]) - 1,
        "channels": config["channels"],
        "architecture": config["architecture"],
        "classes": entry.classes,
        "half_precision_blocks": config["half"],
        "parameters": card["parameters"],
        "training_set": card["training_set"] or None,
        "written": str(place_of(entry.name)),
    }
    say(args, facts, lines(facts))


def lines(facts: dict[str, object]) -> list[str]:
    """What was found, for people."""
    channels = ", ".join(map(str, facts["channels"])) if isinstance(facts["channels"], list) else ""
    found = [
        f"{facts['kind']}, {facts['resolution']}x{facts['resolution']}, {facts['parameters']:,} parameters",
        f"z {facts['z']}, w {facts['w']}, {facts['mapping_layers']} mapping layers",
        f"channels {channels} ({facts['architecture']})",
    ]
    if facts["classes"]:
        found.append(f"{facts['classes']} classes, drawn evenly unless --label names one")
    if facts["half_precision_blocks"]:
        found.append(f"the largest {facts['half_precision_blocks']} blocks run in half precision on a GPU")
    found.append(f"training set: {facts['training_set'] or 'the file does not say'}")
    return [*found, f"{facts['name']}: it has no words yet; lace show 0:0 --model {facts['name']} draws a picture"]
