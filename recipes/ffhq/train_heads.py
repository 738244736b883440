"""Train the heads on labelled latents, measure them on latents held out, and write what ships with a model card.

    python recipes/ffhq/train_heads.py --labels recipes/ffhq/labels.safetensors --out src/lace/attributes/ffhq

Three arrangements of the paper's network are compared: one for each of its twelve attributes, one for all attributes,
and an ensemble of the latter. The ensemble ships. Of the labelled faces the last 5,000 measure, the 5,000 before
calibrate, and the others train. The labels' own noise is read from noise.json, which noise.py writes.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from torch import Tensor

from card import model_card
from common import PAPER, SCHEMA, latents
from lace.attributes.heads import MlpHeads
from lace.attributes.schema import Schema
from lace.attributes.training import Settings, Split, hardened, teach
from lace.files import written_whole
from lace.weights import mobilestylegan
from merge import DISCRETE, read_labels

HELD_OUT = 5000
NOISE = Path(__file__).parent / "noise.json"


def arrangement(kind: str, members: int) -> MlpHeads:
    """Untrained heads: ``separate`` for the paper's twelve attributes, one ``trunk``, or an ``ensemble`` of trunks."""
    schema = Schema(PAPER) if kind == "separate" else SCHEMA
    nets = {"separate": len(schema), "trunk": 1, "ensemble": members}[kind]
    speakers = torch.eye(nets) if kind == "separate" else torch.ones(nets, len(schema))
    return MlpHeads(schema, 512, speakers).initialise(torch.Generator().manual_seed(0))


def train(
    kind: str, w: Tensor, y: Tensor, args: argparse.Namespace
) -> tuple[MlpHeads, dict[str, dict[str, float]], float]:
    """One arrangement, trained and calibrated; its held-out figures, and the seconds it took."""
    heads, start = arrangement(kind, args.members).to(w.device), time.time()
    settings = Settings(epochs=args.epochs, lr=args.lr, weight_decay=args.weight_decay)
    split = Split.at_the_end(torch.arange(len(w), device=w.device), HELD_OUT, HELD_OUT)
    rows = teach(heads, w, y[:, : heads.schema.columns], split, settings)
    return heads, rows, time.time() - start


def agreement(y: Tensor, named: Tensor) -> dict[str, float]:
    """How often the labels name the class that the independent judge names."""
    out = {}
    for k, attribute in enumerate(DISCRETE):
        own = y[-len(named) :, SCHEMA.slice(attribute.name)].argmax(dim=1)
        out[attribute.name] = float((own == named[:, k]).float().mean())
    return out


def second_opinion(rows: dict[str, dict[str, float]], heads: MlpHeads, w: Tensor, named: Tensor) -> None:
    """Add to the figures how often the heads name the class that the independent judge names."""
    readings = heads(w)
    for k, attribute in enumerate(DISCRETE):
        if attribute.name in rows:
            found = readings[:, heads.schema.slice(attribute.name)].argmax(dim=1)
            rows[attribute.name]["accuracy_independent"] = float((found == named[:, k]).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--kinds", nargs="+", default=["separate", "trunk", "ensemble"], choices=["separate", "trunk", "ensemble"]
    )
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--weight-decay", type=float, default=0.3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    y, named = (tensor.to(args.device) for tensor in read_labels(args.labels))
    generator = mobilestylegan.load().to(args.device)
    w = latents(generator, torch.arange(len(y), device=args.device))
    # Held-out labels are hard, since a picture is of one class.
    y[-2 * HELD_OUT :] = hardened(y[-2 * HELD_OUT :], SCHEMA)
    report = {}
    for kind in args.kinds:
        heads, rows, seconds = train(kind, w, y, args)
        second_opinion(rows, heads, w[-HELD_OUT:], named[-HELD_OUT:])
        report[kind] = {"seconds": round(seconds, 1), "attributes": rows}
        print(
            kind,
            f"{seconds:.0f} s",
            {name: round(row.get("accuracy", row.get("mae", 0.0)), 4) for name, row in rows.items()},
            flush=True,
        )
    card = {
        "model": mobilestylegan.IDENTITY,
        "kind": args.kinds[-1],
        "latents": len(y),
        "held_out": HELD_OUT,
        "settings": {key: getattr(args, key) for key in ("members", "epochs", "lr", "weight_decay")},
        "device": "an " + torch.cuda.get_device_name() if args.device == "cuda" else "a CPU",
        "judges_agree": agreement(y, named),
        "noise": json.loads(NOISE.read_text())["difference"],
        "measured": report,
    }
    args.out.mkdir(parents=True, exist_ok=True)
    heads.cpu().signed().save(
        args.out / "heads.safetensors", {**card, "measured": report[args.kinds[-1]]["attributes"]}
    )
    for name, text in (("card.json", json.dumps(card, indent=1)), ("MODEL_CARD.md", model_card(card, SCHEMA))):
        with written_whole(args.out / name) as beside:
            beside.write_text(text + "\n")


if __name__ == "__main__":
    main()
