"""Teach a small network whom a latent shows, from ArcFace's embeddings of faces, and write it with a card.

    python recipes/ffhq/train_identity.py --out src/lace/attributes/ffhq/likeness.safetensors

It draws the labelled latents anew (seed 20211206, psi uniform in [0.5, 1]) and looks at the pictures, for as long as
``--minutes`` says; the last tenth of them measures. Besides the cosine to the truth the card says how well differences
between two people are guessed, as an edit would ask: the correlation of the guessed and the true cosine of pairs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common import PSI, SEED, latents
from lace.baselines.training import recorded
from lace.bench.record import machine
from lace.editing.likeness import Likeness, fit
from lace.generators.mobilestylegan import MobileStyleGAN
from lace.metrics.identity import Identity
from lace.weights import mobilestylegan

EPOCHS, BATCH, LR = 40, 512, 1e-3


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=5, help="how long to draw faces at most")
    parser.add_argument("--batch", type=int, default=32, help="faces drawn at once")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


@torch.no_grad()
def drawn(args: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """w and the embeddings of their pictures, whole batches of them."""
    generator: MobileStyleGAN = mobilestylegan.load().to(args.device)
    identity = Identity.load().to(args.device)
    rows = torch.arange(args.count, device=args.device)
    w = torch.cat([latents(generator, some) for some in rows.split(4096)])
    look = recorded(lambda w: identity.embed(generator.to_picture(w)), w[: args.batch])
    embeddings, start = torch.empty(len(w), 512, device=args.device), time.time()
    for k, some in enumerate(w.split(args.batch)):
        if len(some) < args.batch or time.time() - start > 60 * args.minutes:
            return w[: k * args.batch].clone(), embeddings[: k * args.batch].clone()
        embeddings[k * args.batch : (k + 1) * args.batch] = look(some)
        if k % 200 == 0:
            print(f"{k * args.batch} faces, {time.time() - start:.0f} s", flush=True)
    return w.clone(), embeddings.clone()


@torch.no_grad()
def measured(network: Likeness, w: Tensor, embeddings: Tensor) -> dict[str, float]:
    """On faces never trained on: the mean cosine to the truth, and the correlation of pairs' cosines."""
    guessed = network(w)
    pairs = torch.stack([(each * each.roll(1, dims=0)).sum(dim=1) for each in (guessed, embeddings)])
    own = (guessed * embeddings).sum(dim=1)
    return {"cosine": round(float(own.mean()), 4), "pairs": round(float(torch.corrcoef(pairs)[0, 1]), 4)}


def main() -> None:
    args, start = arguments(), time.time()
    w, embeddings = drawn(args)
    seconds = {"drawing": round(time.time() - start)}
    held_out = len(w) // 10
    network = Likeness(w.shape[1]).initialise(torch.Generator().manual_seed(0)).to(args.device)
    start = time.time()
    fit(network, w[:-held_out], embeddings[:-held_out], EPOCHS, BATCH, LR)
    seconds["training"] = round(time.time() - start)
    network.half().float()
    card: dict[str, Any] = {
        "model": mobilestylegan.IDENTITY,
        "faces": len(w),
        "held_out": held_out,
        "latents": {"seed": SEED, "psi": PSI},
        "settings": {"epochs": EPOCHS, "batch": BATCH, "lr": LR},
        **machine(torch.device(args.device)),
        "measured": {"seconds": seconds, **measured(network, w[-held_out:], embeddings[-held_out:])},
    }
    network.save(args.out, card)
    print(card["measured"])


if __name__ == "__main__":
    main()
