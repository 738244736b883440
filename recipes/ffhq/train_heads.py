"""Train the heads on labelled latents, measure them on latents held out, and write what ships with a model card.

    python recipes/ffhq/train_heads.py --labels recipes/ffhq/labels.safetensors --out src/lace/attributes/ffhq

Three arrangements of the paper's network are compared: one for each of its twelve attributes, one for all attributes,
and an ensemble of the latter. The ensemble ships. Of the labelled faces the last 5,000 measure, the 5,000 before
calibrate, and the others train. The labels' own noise is read from noise.json, which noise.py writes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

import torch
from torch import Tensor

from card import model_card
from common import PAPER, SCHEMA, latents
from lace.attributes.heads import MlpHeads
from lace.attributes.schema import Continuous, Schema
from lace.attributes.training import Settings, calibrate, fit, measure
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


def train(kind: str, w: Tensor, y: Tensor, args: argparse.Namespace) -> tuple[MlpHeads, float]:
    """One arrangement, trained and calibrated; and the seconds it took."""
    heads, start = arrangement(kind, args.members).to(w.device), time.time()
    y = y[:, : heads.schema.columns]
    settings = Settings(epochs=args.epochs, lr=args.lr, weight_decay=args.weight_decay)
    fit(heads, w[: -2 * HELD_OUT], y[: -2 * HELD_OUT], settings)
    seconds = time.time() - start
    calibrate(heads, w[-2 * HELD_OUT : -HELD_OUT], y[-2 * HELD_OUT : -HELD_OUT])
    return heads, seconds


def agreement(y: Tensor, named: Tensor) -> dict[str, float]:
    """How often the labels name the class that the independent judge names."""
    out = {}
    for k, attribute in enumerate(DISCRETE):
        own = y[-len(named) :, SCHEMA.slice(attribute.name)].argmax(dim=1)
        out[attribute.name] = float((own == named[:, k]).float().mean())
    return out


def figures(heads: MlpHeads, w: Tensor, y: Tensor, named: Tensor) -> dict[str, dict[str, float]]:
    """Held-out figures of every attribute by the labels, by the independent judge, and what was calibrated."""
    rows, readings = measure(heads, w, y[:, : heads.schema.columns]), heads(w)
    for k, attribute in enumerate(DISCRETE):
        if attribute.name in rows:
            found = readings[:, heads.schema.slice(attribute.name)].argmax(dim=1)
            rows[attribute.name]["accuracy_independent"] = float((found == named[:, k]).float().mean())
    for temperature, a in zip(heads.temperature, heads.schema, strict=True):
        rows[a.name] |= {"sigma": a.sigma} if isinstance(a, Continuous) else {"temperature": float(temperature)}
    return rows


def identity_of(heads: MlpHeads) -> str:
    """A name that changes with any weight as it will be stored."""
    digest = hashlib.sha256()
    for name, value in sorted(heads.state_dict().items()):
        digest.update(name.encode() + value.half().cpu().numpy().tobytes())
    return f"heads-{digest.hexdigest()[:12]}"


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
    with torch.inference_mode():
        w = torch.cat([latents(generator, index) for index in torch.arange(len(y), device=args.device).split(4096)])
    w, report = w.clone(), {}
    for kind in args.kinds:
        heads, seconds = train(kind, w, y, args)
        # Figures are those of the weights as they ship, in half precision.
        heads.half().float()
        rows = figures(heads, w[-HELD_OUT:], y[-HELD_OUT:], named[-HELD_OUT:])
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
    heads.identity = identity_of(heads)
    args.out.mkdir(parents=True, exist_ok=True)
    heads.cpu().save(args.out / "heads.safetensors", {**card, "measured": report[args.kinds[-1]]["attributes"]})
    for name, text in (("card.json", json.dumps(card, indent=1)), ("MODEL_CARD.md", model_card(card, SCHEMA))):
        with written_whole(args.out / name) as beside:
            beside.write_text(text + "\n")


if __name__ == "__main__":
    main()
