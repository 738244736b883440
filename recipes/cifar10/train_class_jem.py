"""Train Latent-JEM, the paper's baseline, on the labelled latents of CIFAR-10.

    python recipes/cifar10/train_class_jem.py --eta 0.1 --replay
    python recipes/cifar10/train_class_jem.py --eta 0.1

With ``--replay`` walks go on in a buffer of 10,000 that is filled uniformly over the box that the latents span, the
paper's way here; without it they start at the mapping of noise, its way on faces.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor

from cifar import SCHEMA
from draws import GENERATOR, LABELS, generator_in, mapped
from lace.attributes.labels import read_labels
from lace.baselines.latent_jem import Fresh, LatentJem, Replay, Walks, fit, uniform
from lace.baselines.training import Settings
from lace.generators.stylegan2 import StyleGAN2

BASELINES = Path(__file__).parent / "baselines"
# The part of the buffer that travels with the network.
KEPT = 2000


def at_noise(generator: StyleGAN2) -> Fresh:
    """Starts at the mapping of noise."""

    @torch.no_grad()
    def fresh(n: int, random: torch.Generator) -> Tensor:
        return generator.to_w(torch.randn(n, generator.latent_dim, generator=random, device=random.device))

    return fresh


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", type=Path, default=GENERATOR)
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--out", type=Path, default=BASELINES, help="the folder for what is trained")
    parser.add_argument("--eta", type=float, default=0.1)
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--minutes", type=float, default=2, help="how long to train: the learning rate falls with it")
    parser.add_argument("--steps", type=int, default=200, help="of a walk")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    generator = generator_in(args.generator, args.device)
    labels = read_labels(args.labels, SCHEMA)[0].to(args.device)
    # A copy, for what was made without gradients takes part in none.
    w = mapped(generator, len(labels)).clone()
    jem = LatentJem(SCHEMA, w.shape[1], Walks(eta=args.eta, steps=args.steps))
    jem.heads.initialise(torch.Generator().manual_seed(0))
    jem.to(args.device)
    start, done = time.perf_counter(), [0, 0.0]

    def report(step: int, loss: float) -> None:
        done[:] = step + 1, loss

    settings = Settings(args.batch, args.lr, warmup=100, seconds=60 * args.minutes)
    fresh, replay = (uniform(w), Replay()) if args.replay else (at_noise(generator), None)
    held = len(w) // 6
    fit(jem, w[:-held], labels[:-held], fresh, settings, replay, report)
    jem.buffer = jem.buffer[:KEPT]
    seconds = round(time.perf_counter() - start, 1)
    name = f"{'replay' if args.replay else 'noise'}-{args.eta:g}"
    figures = {"steps": done[0], "loss": round(done[1], 2), "seconds": seconds}
    jem.save(args.out / f"{name}.safetensors", {"model": generator.weights_identity, **figures})
    print(name, figures)


if __name__ == "__main__":
    main()
