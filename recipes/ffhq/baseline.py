"""What the training of both baselines shares: labelled latents, arguments, and a look at how well draws obey."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common import PAPER, PSI, latents, truncation
from lace.attributes.heads import MlpHeads
from lace.attributes.schema import Continuous, Schema
from lace.baselines.training import Settings
from lace.baselines.values import asked_values
from lace.bench.record import machine
from lace.catalog import FFHQ_HEADS
from lace.conditions.formula import Formula, leaves
from lace.conditions.language import parse
from lace.generators.mobilestylegan import MobileStyleGAN
from lace.weights import mobilestylegan
from merge import HELD_OUT, read_labels

__all__ = ["HELD_OUT", "VALUES", "Reporter", "arguments", "labelled", "obedience", "settings"]

# What the baselines are told of a face: the paper's twelve attributes, and how it was truncated.
VALUES = Schema((*PAPER, Continuous("psi", *PSI, about="the truncation")))
# The two of the paper's table.
SENTENCES = ("glasses", "female & smile & age=55")


def arguments(about: str | None, batch: int, lr: float) -> argparse.ArgumentParser:
    """The arguments that both trainings take."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=5, help="how long to train: the learning rate falls with it")
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--lr", type=float, default=lr)
    parser.add_argument("--every", type=float, default=45, help="seconds between looks at how it does, each one saved")
    parser.add_argument("--quick", action="store_true", help="a minute's try on a CPU: small batches")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser


def settings(args: argparse.Namespace, warmup: int) -> Settings:
    """What the arguments say of a training."""
    if args.quick:
        args.minutes, args.batch, args.every = 1.0, 32, 20.0
    return Settings(args.batch, args.lr, warmup, seconds=60 * args.minutes)


@torch.no_grad()
def labelled(path: Path, device: str) -> tuple[MobileStyleGAN, Tensor, Tensor]:
    """The generator, all labelled w, and their rows of values; the last HELD_OUT are not for training."""
    labels = read_labels(path)[0].to(device)[:, : VALUES.columns - 1]
    generator = mobilestylegan.load().to(device)
    index = torch.arange(len(labels), device=device)
    w = torch.cat([latents(generator, rows) for rows in index.split(4096)])
    psi = (truncation(index) - PSI[0]) / (PSI[1] - PSI[0])
    return generator, w, torch.cat([labels, psi[:, None]], dim=1)


def obedience(draw: Callable[[Formula], Tensor], heads: MlpHeads) -> dict[str, list[float]]:
    """By the shipped heads: for each class asked for the share of w that have it, for each number the mean error.

    A quick look, no measurement to publish: that is made on pictures, by judges.
    """
    formulas = {sentence: parse(sentence, VALUES) for sentence in SENTENCES}
    return {sentence: _obeyed(formula, heads(draw(formula)), heads.schema) for sentence, formula in formulas.items()}


def _obeyed(formula: Formula, readings: Tensor, schema: Schema) -> list[float]:
    figures = []
    for leaf in leaves(formula):
        columns = schema.slice(leaf.attribute.name)
        own, wanted = readings[:, columns], asked_values(leaf, schema)[columns].to(readings)
        if isinstance(leaf.attribute, Continuous):
            figures.append(float((own - wanted).abs().mean()) * leaf.attribute.span)
        else:
            figures.append(float((own.argmax(dim=1) == wanted.argmax()).float().mean()))
    return [round(figure, 3) for figure in figures]


class Reporter:
    """Prints how a training goes and keeps what there is, now and then and at the end.

    ``look`` gives figures of the network as it is; ``save`` writes it with a card that holds them.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        look: Callable[[MlpHeads], dict[str, Any]],
        save: Callable[[Path, dict[str, Any]], None],
    ) -> None:
        self.args, self.look, self.save = args, look, save
        self.heads = MlpHeads.load(FFHQ_HEADS).to(args.device)
        self.start = self.last = time.time()
        self.steps, self.loss = 0, 0.0

    def __call__(self, step: int, loss: float) -> None:
        self.steps, self.loss = step + 1, loss
        if time.time() - self.last > self.args.every:
            self.keep()
            self.last = time.time()

    def keep(self) -> None:
        """Look, print and save."""
        figures = {"steps": self.steps, "seconds": round(time.time() - self.start), "loss": round(self.loss, 2)}
        figures |= self.look(self.heads)
        print(figures, flush=True)
        chosen = {key: getattr(self.args, key) for key in ("batch", "lr", "minutes")}
        where = machine(torch.device(self.args.device))
        self.save(self.args.out, {"model": mobilestylegan.IDENTITY, "settings": chosen, **where, "measured": figures})
