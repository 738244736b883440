"""Train the Latent-JEM baseline on the labelled latents, and write it with a card.

    python recipes/ffhq/train_latent_jem.py --labels recipes/ffhq/labels.safetensors --eta 0.1 --out jem.safetensors

The paper trains with eta = 0.1 and 0.01. Walks start at the mapping of noise, truncated as the labelled faces are, or
with ``--replay`` in a buffer of 10,000 that is filled uniformly over the box that the latents span. It learns from the
same 90,000 faces as the heads, and of the same network.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from baseline import HELD_OUT, Reporter, arguments, labelled, obedience, settings
from common import PAPER, PSI
from lace import rng
from lace.attributes.heads import MlpHeads
from lace.attributes.schema import Schema
from lace.baselines.latent_jem import Fresh, LatentJem, Replay, Walks, fit, uniform
from lace.baselines.values import asked_values
from lace.generators.mobilestylegan import MobileStyleGAN

SCHEMA = Schema(PAPER)
ROWS, DRAWS = 1000, 256
# The part of the buffer that travels with the network.
KEPT = 2000


def mapped(generator: MobileStyleGAN) -> Fresh:
    """Starts like the labelled latents: the mapping of noise, with psi from the same range."""

    @torch.no_grad()
    def fresh(n: int, random: torch.Generator) -> Tensor:
        z = torch.randn(n, generator.latent_dim, generator=random, device=random.device)
        psi = PSI[0] + (PSI[1] - PSI[0]) * torch.rand(n, 1, generator=random, device=random.device)
        return generator.truncate(generator.mapping(z), psi)

    return fresh


def main() -> None:
    parser = arguments(__doc__, batch=1024, lr=1e-3)
    parser.add_argument("--eta", type=float, default=0.1)
    parser.add_argument("--replay", action="store_true")
    args = parser.parse_args()
    how = settings(args, warmup=100)
    generator, w, values = labelled(args.labels, args.device)
    labels = values[:, : SCHEMA.columns]
    jem = LatentJem(SCHEMA, w.shape[1], Walks(eta=args.eta))
    jem.heads.initialise(torch.Generator().manual_seed(0))
    jem.to(args.device)
    index = torch.arange(DRAWS, device=args.device)

    def look(heads: MlpHeads) -> dict[str, Any]:
        with torch.no_grad():
            starts = jem.remembered(1, index) if args.replay else generator.to_w(rng.normal(1, index, 512))
            gap = jem.energy(starts).mean() - jem.energy(w[-ROWS:]).mean()
        obeyed = obedience(lambda formula: jem.sample(asked_values(formula, SCHEMA).to(w), starts, 1, index), heads)
        return {"gap": round(float(gap), 3), "obeyed": obeyed}

    reporter = Reporter(args, look, jem.save)
    replay = Replay() if args.replay else None
    fresh = uniform(w[:-HELD_OUT]) if args.replay else mapped(generator)
    fit(jem, w[:-HELD_OUT], labels[:-HELD_OUT], fresh, how, replay, reporter)
    jem.buffer = jem.buffer[:KEPT]
    reporter.keep()


if __name__ == "__main__":
    main()
