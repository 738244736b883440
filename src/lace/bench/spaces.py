"""Where attributes are best read: on z, on w, or on the picture itself; the paper's flow in each space.

z, w:     the same network, trained by the same labels, on the noise and on what the mapping makes of it
picture:  no network is trained; the labelling judge's own logits, and their gradients through the whole generator
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..attributes.heads import Heads, MlpHeads
from ..attributes.schema import Discrete, Schema
from ..attributes.training import Settings, calibrate, fit, hardened
from ..errors import UnknownNameError
from ..generators.function import FunctionGenerator
from ..metrics.jury import Jury
from ..model import Model
from ..samplers.ode import Ode
from .contest import COLUMNS, Contender, Line, raced
from .figures import COLORS, panels, tidy
from .gallery import Asked, Gallery, judged
from .record import Cell, Findings, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ABOUT", "WORDS", "draw", "measure"]

ABOUT = "The paper's flow with attributes read on the noise z, on the latent w, and on the picture itself."

# The words of each model that are asked for together.
WORDS = {"ffhq": ("glasses", "gender", "smile"), "cifar10": ("class",)}
# Pictures of a row, of the reference, and labelled ones: large pictures take their time.
SIZES = {"ffhq": (256, 2048, 8192), "cifar10": (4000, 10_000, 50_000)}
PAPER = "The paper's figures, on CIFAR-10: ACC .929 on z, .971 on w, .473 on the picture; FID 7.34, 6.69, 20.18."
# Every tenth labelled latent calibrates.
HELD_OUT = 10


@dataclass(frozen=True)
class Labelled:
    """Latents of a model and what the labelling judge says of their pictures."""

    z: Tensor
    w: Tensor
    labels: Tensor

    @classmethod
    @torch.no_grad()
    def drawn(cls, model: Model, jury: Jury, words: Schema, count: int) -> Labelled:
        z = model.generator.prior(2**63 + 1, torch.arange(count, device=model.device))
        w = model.generator.to_w(z)
        verdict = judged(model.generator, jury, w)
        labels = torch.cat([verdict.soft(word, "labeller") for word in words if isinstance(word, Discrete)], dim=1)
        return cls(z, w, labels)


def taught(x: Tensor, labels: Tensor, words: Schema, epochs: int) -> MlpHeads:
    """One network for all words, trained on x and calibrated on a tenth of it."""
    heads = MlpHeads(words, x.shape[1], torch.ones(1, len(words)))
    heads.initialise(torch.Generator().manual_seed(0)).to(x.device)
    held = torch.arange(len(x), device=x.device) % HELD_OUT == 0
    fit(heads, x[~held], labels[~held], Settings(epochs=epochs))
    calibrate(heads, x[held], hardened(labels[held], words))
    return heads


def drawing(model: Model) -> Callable[[Tensor], Tensor]:
    """From noise to picture."""
    return lambda z: model.generator.to_picture(model.generator.to_w(z))


def on_latents(space: str, model: Model, heads: Heads) -> Model:
    """The model with attributes read on its noise or on its w."""
    generator = model.generator if space == "w" else FunctionGenerator(drawing(model), model.generator.latent_dim)
    return Model(generator, heads, model.device, space, bank_size=1)


def on_picture(model: Model, gallery: Gallery) -> Model:
    """The model with attributes read off its pictures, by the labelling judge."""
    judge = gallery.jury.judges["labeller"]
    words = [(word, partial(judge.logits, word)) for word in words_of(model) if isinstance(word, Discrete)]
    generator = FunctionGenerator(lambda pictures: pictures, model.generator.latent_dim, drawing(model))
    return Model(generator, words, model.device, "picture", bank_size=1)


def words_of(model: Model) -> Schema:
    """What is asked of a model here."""
    if model.name not in WORDS:
        raise UnknownNameError(f"This bench needs judges of pictures, which {' and '.join(WORDS)} have.")
    return Schema(model.schema[name] for name in WORDS[model.name])


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A line for each space; a quick run leaves the picture out, whose every step draws all pictures."""
    words = words_of(model)
    n, own, count, epochs = (16, 64, 300, 30) if quick else (*SIZES[model.name], 50)
    say("the model's own pictures")
    gallery, asked = Gallery.opened(model, own), Asked.uniform(model, *WORDS[model.name])
    say("labelling")
    labelled = Labelled.drawn(model, gallery.jury, words, count)
    rows: list[tuple[Cell, ...]] = []
    for space, x in (("z", labelled.z), ("w", labelled.w)):
        say(f"training on {space}")
        start = time.perf_counter()
        heads = taught(x, labelled.labels, words, epochs)
        seconds = time.perf_counter() - start
        rows.append((seconds, *flown(on_latents(space, model, heads), Ode(), asked, n, gallery)))
    if not quick:
        say("picture")
        rows.append((None, *flown(on_picture(model, gallery), Ode(batch=gallery.jury.batch), asked, n // 8, gallery)))
    note = f"{n} pictures a row, an eighth of them for the picture itself; {count:,} labelled latents."
    columns = ("training s", "space", *COLUMNS)
    return Findings(
        {
            "spaces": Table(
                "The paper's flow, by where attributes are read",
                columns,
                rows,
                f"{note} FD: {gallery.jury.features}. {PAPER}",
            )
        }
    )


def flown(model: Model, flow: Ode, asked: Asked, n: int, gallery: Gallery) -> tuple[Cell, ...]:
    """The paper's flow in the space that a model reads."""
    (line,) = raced(Contender("ode", {"sampler": flow}), (asked,), n, replace(gallery, model=model))
    return (model.name, *line)


def draw(tables: dict[str, Table]) -> Figure:
    """Right against near, a point for each space."""
    figure, (axis,) = panels(1)
    for color, row in zip(COLORS, tables["spaces"].rows, strict=False):
        line = Line.of(row[2:])
        axis.plot([line.distance], [line.right_b], "o", color=color, label=str(row[1]), markersize=9)
    tidy(
        axis,
        f"{tables['spaces'].rows[0][2]}, by the paper's flow",
        "Frechet distance to the model's own",
        "right by judge B",
    )
    return figure
