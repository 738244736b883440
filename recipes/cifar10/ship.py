"""Let the model appear: copy generator and heads to where the catalog looks, with a card of what was measured.

    python recipes/cifar10/ship.py

Heads of another generator than this one are refused.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from cifar import WORD, WORK
from draws import GENERATOR
from lace.attributes.card import read_card
from lace.catalog import SHIPPED
from lace.errors import DataError
from lace.files import written_whole
from train_classifiers import JUDGES

__all__ = ["model_card", "ship"]

LARGEST = 16_000_000
CARD = """# CIFAR-10: model card

A StyleGAN2 of 32x32 pixels without classes, and heads that read the class from its w; `recipes/cifar10/ship.py` wrote
this.

- **Generator:** channels {channels} at 4 to 32 pixels, mapping of 2 layers, {parameters:,} parameters, half precision.
  It saw {pictures_seen:,} pictures of CIFAR-10, mirrored ones included; augmentation ended at p = {augmentation:.2f}.
- **Heads:** {members} networks 512-384-256-128, trained on {train:,} drawn pictures for {epochs} epochs. They name the
  labelling judge's class on {heads:.1%} of drawn pictures never seen, and the independent judge's on {second:.1%}.
- **Judges:** the labeller is right on {labeller:.2%} of the test set, the independent judge on {independent:.2%}.
- **Not for:** anything but trying things. CIFAR-10's pictures were taken from the web for research.

| figure | drawn | real |
|---|---|---|
| mean probability of the likeliest class, by the independent judge | {confidence:.3f} | {confidence_test_set:.3f} |
| right on the test set: a classifier taught by these alone | {taught_accuracy:.2%} | {independent:.2%} |
| Frechet distance of {half:,} to half of the training set, judge's features | {fd:.3g} | {fd_halves:.3g} |
"""


def model_card(
    generator: dict[str, Any], heads: dict[str, Any], judges: dict[str, Any], quality: dict[str, Any]
) -> str:
    """The card as Markdown."""
    measured = heads["measured"][WORD.name]
    return CARD.format(
        **{**generator, "channels": ", ".join(map(str, generator["config"]["channels"]))},
        **quality,
        members=heads["settings"]["members"],
        epochs=heads["settings"]["epochs"],
        train=heads["latents"] - 2 * heads["held_out"],
        heads=measured["accuracy"],
        second=measured["accuracy_independent"],
        labeller=judges["labeller"]["accuracy"],
        independent=judges["independent"]["accuracy"],
        half=quality["drawn"] // 2,
    )


def ship(generator: Path, heads: Path, folder: Path) -> None:
    """Copy both files whole, the heads last: a model without them does not appear."""
    if generator.stat().st_size > LARGEST:
        raise DataError(f"{generator} has more than {LARGEST / 1e6:.0f} MB; train with fewer channels.")
    if read_card(heads)["model"] != read_card(generator)["identity"]:
        raise DataError(f"{heads} was trained for another generator; run label_draws.py and teach_heads.py again.")
    for path in (generator, heads):
        with written_whole(folder / path.name) as beside:
            shutil.copyfile(path, beside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", type=Path, default=GENERATOR)
    parser.add_argument("--heads", type=Path, default=WORK / "heads.safetensors")
    parser.add_argument("--judges", type=Path, default=JUDGES)
    parser.add_argument("--quality", type=Path, default=WORK / "quality.json")
    parser.add_argument("--out", type=Path, default=SHIPPED / "cifar10")
    args = parser.parse_args()
    cards = {name: read_card(args.judges / f"{name}.safetensors") for name in ("labeller", "independent")}
    text = model_card(read_card(args.generator), read_card(args.heads), cards, json.loads(args.quality.read_text()))
    ship(args.generator, args.heads, args.out)
    with written_whole(args.out / "MODEL_CARD.md") as beside:
        beside.write_text(text)
    print(f"The model 'cifar10' is in {args.out}.")


if __name__ == "__main__":
    main()
