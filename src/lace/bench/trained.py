"""Trained baselines as contenders: StyleFlow and Latent-JEM, drawn from as their papers say.

Their weights are small and lie beside the recipes that make them; a bench leaves out those that are not there, and says
how to make them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..attributes.card import read_card
from ..baselines.latent_jem import LatentJem
from ..baselines.styleflow import StyleFlow
from ..baselines.values import asked_values
from ..conditions.formula import Near
from .contest import Contender, Drawn

if TYPE_CHECKING:
    from ..conditions.formula import Formula
    from ..model import Model

__all__ = ["BASELINES", "Trained", "missing", "trained"]

FOLDER = Path("recipes/ffhq/baselines")
# The name in a table, and the file that its recipe writes.
BASELINES = {
    "StyleFlow": "styleflow.safetensors",
    "Latent-JEM, eta 0.1": "latent-jem-0.1.safetensors",
    "Latent-JEM, eta 0.01": "latent-jem-0.01.safetensors",
    "Latent-JEM, eta 0.1, replay": "latent-jem-0.1-replay.safetensors",
    "Latent-JEM, eta 0.01, replay": "latent-jem-0.01-replay.safetensors",
}

# w for the values of a formula at the addresses (seed, index).
Draw = Callable[["Formula", int, Tensor], Tensor]


@dataclass(frozen=True)
class Trained(Contender):
    """A baseline with weights of its own, and the seconds that its training took."""

    way: Draw
    seconds: float | None = None

    @torch.no_grad()
    def draw(self, model: Model, sentence: str | Formula, n: int, seed: int) -> Drawn:
        start = time.perf_counter()
        w = self.way(model.formula(sentence), seed, torch.arange(n, device=model.device))
        return Drawn(w, 0, time.perf_counter() - start)


def trained(model: Model) -> list[Trained]:
    """All whose weights are there."""
    found = []
    for name, file in BASELINES.items():
        if (path := FOLDER / file).exists():
            way = styleflow(path, model) if name == "StyleFlow" else latent_jem(path, model)
            found.append(Trained(name, {}, way, read_card(path).get("measured", {}).get("seconds")))
    return found


def missing() -> str:
    """A sentence about those whose weights are not there, and what makes them; empty where there is none."""
    names = [name for name, file in BASELINES.items() if not (FOLDER / file).exists()]
    made = "recipes/ffhq/README.md says how to train them (steps 5 and 6)"
    return f" Left out for want of weights in {FOLDER}: {'; '.join(names)}. {made}." if names else ""


def styleflow(path: Path, model: Model) -> Draw:
    """The flow is told the truncation too."""
    flow = StyleFlow.load(path).to(model.device)
    truncated = Near(flow.schema["psi"], model.generator.psi)  # type: ignore[arg-type]

    def draw(formula: Formula, seed: int, index: Tensor) -> Tensor:
        return flow.sample(asked_values(formula & truncated, flow.schema).to(index.device), seed, index)

    return draw


def latent_jem(path: Path, model: Model) -> Draw:
    """Walks from the buffer, where there is one, else from the mapping of noise."""
    jem = LatentJem.load(path).to(model.device)

    def draw(formula: Formula, seed: int, index: Tensor) -> Tensor:
        own = model.generator.to_w(model.generator.prior(seed, index))
        starts = jem.remembered(seed, index).to(own) if len(jem.buffer) else own
        return jem.sample(asked_values(formula, jem.schema).to(own), starts, seed, index)

    return draw
