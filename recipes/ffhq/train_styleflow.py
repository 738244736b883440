"""Train the StyleFlow baseline on the labelled latents, and write it with a card.

    python recipes/ffhq/train_styleflow.py --labels recipes/ffhq/labels.safetensors --out styleflow.safetensors

Its condition is the paper's twelve attributes and psi, so that one flow draws at any truncation that was labelled. It
learns from the same 90,000 faces as the heads; the values of 10,000 of them travel with it. The authors took batches of
5, each w repeated 18 times, for 10 epochs of 10,000 faces; a GPU is no slower with large ones, and sees more faces.
"""

from __future__ import annotations

from typing import Any

import torch

from baseline import HELD_OUT, VALUES, Reporter, arguments, labelled, obedience, settings
from lace.attributes.heads import MlpHeads
from lace.baselines.styleflow import StyleFlow, fit
from lace.baselines.values import asked_values
from lace.conditions.formula import Near

EXAMPLES = 10_000
# Held-out rows for the density, and draws for obedience.
ROWS, DRAWS = 1000, 256
PSI = 0.7


def main() -> None:
    parser = arguments(__doc__, batch=1024, lr=1e-3)
    args = parser.parse_args()
    how = settings(args, warmup=100)
    _, w, values = labelled(args.labels, args.device)
    flow = StyleFlow(VALUES, w.shape[1], values[:EXAMPLES].cpu()).initialise(torch.Generator().manual_seed(0))
    flow.to(args.device)
    index = torch.arange(DRAWS, device=args.device)
    probes = torch.randn(1, ROWS, w.shape[1], generator=torch.Generator().manual_seed(0)).to(args.device)

    @torch.no_grad()
    def look(heads: MlpHeads) -> dict[str, Any]:
        was = flow.training
        flow.eval()
        surprise = -flow.log_prob(w[-ROWS:], values[-ROWS:], probes).mean()
        truncated = Near(VALUES["psi"], PSI)  # type: ignore[arg-type]
        obeyed = obedience(
            lambda formula: flow.sample(asked_values(formula & truncated, VALUES).to(w), 1, index), heads
        )
        flow.train(was)
        return {"surprise": round(float(surprise), 2), "obeyed": obeyed}

    reporter = Reporter(args, look, flow.save)
    fit(flow, w[:-HELD_OUT], values[:-HELD_OUT], how, reporter)
    reporter.keep()


if __name__ == "__main__":
    main()
