"""Make LACE's generator of a training's checkpoint: the average, gains folded in, in half precision.

    python recipes/cifar10/export_generator.py

The file is of the safe form that `lace import` writes and takes. Its card is what the catalog says of the model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from torch import Tensor

from checkpoint import PARTS
from cifar import WORK
from draws import GENERATOR
from lace.attributes.card import read_with_card, write_with_card
from trainee import Trainee

__all__ = ["identity_of"]

ABOUT = "small pictures of ten classes (StyleGAN2, trained here on CIFAR-10)"
LICENCE = "weights MIT as the code; the CIFAR-10 pictures behind them were collected from the web for research"


def identity_of(state: dict[str, Tensor]) -> str:
    """A name that changes with any weight as it is stored."""
    digest = hashlib.sha256()
    for name, value in sorted(state.items()):
        digest.update(name.encode() + value.half().numpy().tobytes())
    return f"cifar10-stylegan2-{digest.hexdigest()[:12]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--training", type=Path, default=WORK / "training", help="the folder of the checkpoint")
    parser.add_argument("--out", type=Path, default=GENERATOR)
    args = parser.parse_args()
    card, weights = read_with_card(args.training / f"{PARTS[0]}.safetensors")
    average = Trainee(tuple(card["channels"]))
    average.load_state_dict(weights)
    config, state = average.finished()
    facts = {"kind": "StyleGAN2, LACE's own training", "training_set": "CIFAR-10", "pictures_seen": card["seen"]}
    facts |= {"parameters": sum(parameter.numel() for parameter in average.parameters()), "augmentation": card["p"]}
    named = {"generator": "stylegan2", "identity": identity_of(state), "config": json.loads(json.dumps(config))}
    write_with_card(args.out, state, {**named, **facts, "about": ABOUT, "licence": LICENCE})
    print(f"{args.out}: {args.out.stat().st_size / 1e6:.1f} MB, after {card['seen']:,} pictures")


if __name__ == "__main__":
    main()
