"""Train the heads of the CIFAR-10 model on labelled latents, and measure them on latents held out.

    python recipes/cifar10/teach_heads.py

Two arrangements of the paper's network: a single one, as in the paper, and the ensemble that ships. Of the labelled
pictures the last twelfth measures, the twelfth before calibrates, and the others train.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from cifar import SCHEMA, WORD, WORK
from draws import GENERATOR, LABELS, generator_in, mapped
from lace.attributes.heads import MlpHeads
from lace.attributes.labels import read_labels
from lace.attributes.training import Settings, Split, hardened, teach


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", type=Path, default=GENERATOR)
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--out", type=Path, default=WORK / "heads.safetensors")
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--weight-decay", type=float, default=0.3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    generator = generator_in(args.generator, args.device)
    labels, named = (part.to(args.device) for part in read_labels(args.labels, SCHEMA))
    w, held = mapped(generator, len(labels)), len(labels) // 12
    # Held-out labels are hard, since a picture is of one class.
    labels[-2 * held :] = hardened(labels[-2 * held :], SCHEMA)
    split = Split.at_the_end(torch.arange(len(w), device=args.device), held, held)
    settings = Settings(epochs=args.epochs, lr=args.lr, weight_decay=args.weight_decay)
    seconds: dict[str, float] = {}
    measured: dict[str, Any] = {}
    for kind, members in (("single", 1), ("ensemble", args.members)):
        heads = MlpHeads(SCHEMA, w.shape[1], torch.ones(members, 1)).initialise(torch.Generator().manual_seed(0))
        start = time.perf_counter()
        rows = teach(heads.to(args.device), w, labels, split, settings)
        seconds[kind] = round(time.perf_counter() - start, 1)
        found = heads(w[-held:]).argmax(dim=1)
        rows[WORD.name]["accuracy_independent"] = float((found == named[-held:, 0]).float().mean())
        measured[kind] = rows[WORD.name]
        print(kind, f"{seconds[kind]:.0f} s", {name: round(value, 4) for name, value in rows[WORD.name].items()})
    own = {"members": args.members, "epochs": args.epochs, "lr": args.lr, "weight_decay": args.weight_decay}
    card = {"model": generator.weights_identity, "latents": len(w), "held_out": held, "settings": own}
    about = {"measured": {WORD.name: measured["ensemble"]}, "arrangements": measured, "seconds": seconds}
    heads.cpu().signed().save(args.out, {**card, **about})


if __name__ == "__main__":
    main()
