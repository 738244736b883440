"""The paper's figures of logic, in both readings.

Our samplers read a sentence as a probability, the paper's flow as an energy. What was drawn is shown to the panel that
labels, and counted right where its answers make the sentence true: a number counts where it is within a tenth of its
range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..attributes.annotators.faces import FacePanel
from ..attributes.labels import read_labels
from ..attributes.schema import Discrete, Schema
from ..conditions.formula import Formula, leaves
from ..conditions.margin import margin
from ..errors import UnsatisfiableCondition
from ..metrics.bootstrap import estimate, mean
from ..model import Model
from ..sheet import contact_sheet
from .figures import COLORS, panels, tidy
from .gallery import FOLDER, WORKERS, drawn
from .record import Cell, Findings, Table

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from ..planning import Wishes

__all__ = ["ABOUT", "draw", "measure"]

ABOUT = "Sentences with AND, OR and NOT: how rare they are, and what is drawn."

LABELS = Path("recipes/ffhq/labels.safetensors")
SENTENCES = {
    "and": "glasses & yaw=0",
    "or": "glasses | yaw=0",
    "and not": "glasses & ~yaw=0",
    "recursive": "(glasses & yaw=0) | (glasses=no & ~yaw=0)",
}
COLUMNS = (
    *("figure", "sentence", "drawn by", "reading", "P", "training latents"),
    *("right by panel", "low", "high", "evaluations a latent"),
)
SHOWN = 4


@dataclass(frozen=True)
class Way:
    """A sampler with its reading, under a name."""

    name: str
    reading: str
    wish: Wishes


WAYS = (
    Way("auto", "probability", {}),
    Way("auto, strictness 0.4", "probability", {"strictness": 0.4}),
    Way("the paper's flow", "energy", {"sampler": "ode", "reading": "energy"}),
)


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A row for each sentence and way; a page with faces of each."""
    n = SHOWN if quick else 200
    labels = truth(read_labels(LABELS, model.schema)[0], model.schema).to(model.device)
    rows: list[tuple[Cell, ...]] = []
    faces, captions = [], []
    with FacePanel.load(FOLDER, model.schema, model.device, workers=0 if quick else WORKERS) as panel:
        for figure, sentence in SENTENCES.items():
            formula = model.formula(sentence)
            known = int((margin(formula, labels, model.schema) > 0).sum())
            for way in WAYS:
                say(f"{sentence}: {way.name}")
                about = (figure, sentence, way.name, way.reading, model.probability(formula).probability, known)
                found, shown = asked(panel, model, formula, way, n)
                rows.append((*about, *found))
                faces += shown
                captions += [f"{figure}, {way.name}", *[""] * (len(shown) - 1)] if shown else []
    note = f"{n} faces a row. Empty: the sampler refused. Training latents: how many of {len(labels):,} obey by label."
    page = contact_sheet(faces, captions, ABOUT, "", SHOWN)
    return Findings({"logic": Table("Logic", COLUMNS, rows, note)}, page)


def asked(
    panel: FacePanel, model: Model, formula: Formula, way: Way, n: int
) -> tuple[tuple[float | None, ...], list[NDArray[np.uint8]]]:
    """How often the panel sees what was asked, with its interval and the work of a latent; and the first faces."""
    try:
        drawing = model.latents(formula, n, seed=11, **way.wish)
    except UnsatisfiableCondition:
        return (None,) * 4, []
    right = seen(panel, model, formula, drawing.w)
    work = drawing.info.evaluations / n if drawing.info else None
    return (*estimate(right, mean), work), list(model.pictures(drawing.w[:SHOWN]))


def seen(panel: FacePanel, model: Model, formula: Formula, w: Tensor) -> Tensor:
    """Of each picture whether the sentence is true by the panel's answers."""
    names = {leaf.attribute.name for leaf in leaves(formula)}
    answers = panel.read(drawn(model.generator, w), names)
    return (margin(formula, truth(answers, model.schema), model.schema) > 0).float()


def truth(labels: Tensor, schema: Schema) -> Tensor:
    """Labels in the layout of readings: logarithms of class probabilities, numbers as they are."""
    columns = [labels[:, schema.slice(attribute.name)] for attribute in schema]
    logs = [own.log() if isinstance(a, Discrete) else own for a, own in zip(schema, columns, strict=True)]
    return torch.cat(logs, dim=1)


def draw(tables: dict[str, Table]) -> Figure:
    """What the panel sees, sentence by sentence."""
    table = tables["logic"]
    figure, (axis,) = panels(1, width=9)
    names = list(dict.fromkeys(table.column("figure")))
    for k, way in enumerate(WAYS):
        own: dict[Cell, Cell] = {row[0]: row[6] for row in table.rows if row[2] == way.name}
        heights = [float(own[name] or 0) for name in names]
        axis.bar([x + 0.27 * (k - 1) for x in range(len(names))], heights, 0.25, color=COLORS[k], label=way.name)
    axis.set_xticks(range(len(names)), names)
    tidy(axis, "Sentences", "", "right by the panel")
    return figure
