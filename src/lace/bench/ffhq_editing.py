"""Sequential editing of the same faces: the paper's flow with and without its two aids, StyleFlow, the neighbourhood.

Faces that look ahead, do not smile, wear no glasses and are young turn, smile, age and put on glasses, in two orders,
as in the paper. Judges look at the pictures before and after every edit:

ACC:       the match with what the sequence asks for (lace.metrics.accuracy), by the panel that labels
DES:       how far each edit moves its own attribute and no other (lace.metrics.disentanglement)
identity:  1 - cosine of ArcFace's embeddings, to the picture before the edit and to the start
kept:      the share of other words on which the independent judge says the same as of the start
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..attributes.annotators.faces import FacePanel
from ..attributes.schema import Discrete
from ..baselines.styleflow import StyleFlow
from ..baselines.styleflow_editing import StyleFlowEditing
from ..baselines.values import asked_values
from ..drawing import Drawing
from ..editing.album import Album
from ..editing.neighbourhood import Neighbourhood
from ..editing.paper import Paper
from ..metrics.bootstrap import Estimate, estimate, mean
from ..metrics.disentanglement import Disentanglement, disentanglement
from ..metrics.identity import Identity, identity_loss
from ..model import Model, load
from ..sheet import contact_sheet
from .figures import COLORS, panels, tidy
from .gallery import FOLDER, WORKERS, drawn
from .record import Cell, Findings, Table

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from PIL.Image import Image

    from ..conditions.formula import Formula
    from ..editing.scene import Method

__all__ = ["ABOUT", "draw", "measure"]

ABOUT = (
    "Sequential editing of faces: how far each edit moves what it is about, what else moves, and what becomes of who."
)

START = "yaw in -5..5 & smile=no & glasses=no & age in 18..32"
ORDERS = (("yaw=25", "smile", "age=55", "glasses"), ("age=55", "yaw=25", "glasses", "smile"))
# The words whose readings the paper's objective keeps.
TWELVE = (
    *("smile", "glasses", "gender", "beard", "haircolor", "bald"),
    *("yaw", "pitch", "age", "width", "light0", "light3"),
)
# Words that no edit here is about or brings along.
OTHERS = ("gender", "beard", "bald", "hat", "bangs", "wavyhair", "goatee", "sideburns")
SHOWN = 2
# What recipes/ffhq/train_styleflow.py makes.
STYLEFLOW = Path("recipes/ffhq/baselines/styleflow.safetensors")


@dataclass(frozen=True)
class Contender:
    """A way to edit under its name in the table."""

    name: str
    method: Method
    subset: bool = False


def contenders(model: Model) -> list[Contender]:
    """The paper's rows, StyleFlow's where it has been trained, and the neighbourhood's peak and draws."""
    return [
        Contender("paper", Paper(rest=TWELVE)),
        Contender("paper, no reweighting", Paper(reweight=False, rest=TWELVE)),
        Contender("paper, subset", Paper(rest=TWELVE), True),
        *styleflow(model),
        Contender("neighbourhood, amount 0", Neighbourhood(0.0)),
        Contender("neighbourhood, amount 0, no likeness", Neighbourhood(0.0, alike=0.0)),
        Contender("neighbourhood, amount 0.1", Neighbourhood(0.1)),
        Contender("neighbourhood, amount 0.1, subset", Neighbourhood(0.1), True),
    ]


def styleflow(model: Model) -> list[Contender]:
    """As its authors edit, with and without subsets; and asking for just what is asked."""
    if not STYLEFLOW.exists():
        return []
    flow = StyleFlow.load(STYLEFLOW).to(model.device)
    return [
        Contender("StyleFlow", StyleFlowEditing(flow)),
        Contender("StyleFlow, subset", StyleFlowEditing(flow), True),
        Contender("StyleFlow, no gains", StyleFlowEditing(flow, gains={})),
    ]


class Bench:
    """A model and those who look at its pictures; the panel is its owner's to close."""

    def __init__(self, model: Model, panel: FacePanel) -> None:
        self.model, self.panel = model, panel
        self.independent = FacePanel.load(FOLDER, model.schema, model.device, "independent")
        self.identity = Identity.load().to(model.device)

    def seen(self, drawing: Drawing, words: tuple[str, ...]) -> Stage:
        """What all of them say of a drawing."""
        labels = self.panel.read(self.faces(drawing), words)
        others = self.independent.read(self.faces(drawing), OTHERS)
        with torch.inference_mode():
            embeddings = torch.cat([self.identity.embed(faces).cpu() for faces in self.faces(drawing)])
        return Stage(labels, others, embeddings)

    def faces(self, drawing: Drawing) -> Iterator[Tensor]:
        return drawn(self.model.generator, drawing.w)


@dataclass(frozen=True)
class Stage:
    """Judged faces between two edits."""

    labels: Tensor
    others: Tensor
    embeddings: Tensor


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A table for each order: a row for each way to edit and each truncation."""
    n, psis = (6, (0.7,)) if quick else (512, (0.5, 0.7))
    tables, pages = {}, []
    for edits in ORDERS[: 1 if quick else None]:
        rows: list[tuple[Cell, ...]] = []
        for psi in psis:
            own = load(model.name, str(model.device), psi)
            with FacePanel.load(FOLDER, own.schema, own.device, workers=0 if quick else WORKERS) as panel:
                for contender, album, figures in raced(Bench(own, panel), edits, n, say):
                    rows.append((contender.name, psi, *figures))
                    if psi == psis[-1] and edits == ORDERS[0]:
                        pages.append((contender.name, faces_of(album)))
        names = [edit.partition("=")[0] for edit in edits]
        tables[" ".join(names)] = Table(", then ".join(edits), columns(names), rows, NOTE.format(n=n))
    return Findings(tables, page(pages))


def raced(
    bench: Bench, edits: tuple[str, ...], n: int, say: Callable[[str], None]
) -> Iterator[tuple[Contender, Album, list[float]]]:
    """What each contender makes of the same faces."""
    start = bench.model.latents(START, n, seed=7)
    for contender in contenders(bench.model):
        say(f"{', '.join(edits)}: {contender.name}")
        album = bench.model.edit(start, edits, method=contender.method, subset=contender.subset)
        yield contender, album, scored(bench, album)


NOTE = (
    "{n} faces, found by: "
    + START.replace("|", "\\|")
    + ". DES by the paper's letter; plain counts the others' change "
    "as it is. low, high: 95 % of DES. ACC is 1 - |difference| / range for numbers. obeys: by the heads. The paper, on "
    "StyleGAN2 at psi 0.5: DES 0.735, identity 0.501, ACC 0.938, 0.956, 0.881, 0.997 (yaw, smile, age, glasses); "
    "StyleFlow 0.569, 0.549, and 0.947, 0.773, 0.817, 0.876. StyleFlow is raced where recipes/ffhq has trained it. The "
    "neighbourhood keeps whom a small network takes the face for; it learned from the ArcFace that measures identity. "
    "One row does without."
)


def columns(names: list[str]) -> tuple[str, ...]:
    steps = [f"{figure} +{name}" for name in names for figure in ("DES", "identity")]
    accs = [f"ACC {name}" for name in names]
    return ("edited by", "psi", *steps, "DES", "low", "high", "plain", "identity", *accs, "kept", "obeys")


def scored(bench: Bench, album: Album) -> list[float]:
    """A row of the table, after the name."""
    names = tuple(formula_words(album))
    stages = [bench.seen(drawing, names) for drawing in album.drawings]
    asked = asked_values(sentence(album), album.model.schema)
    found = disentanglement([stage.labels for stage in stages], asked, album.model.schema, names)
    steps = [
        figure
        for name, (before, after) in zip(names, pairwise(stages), strict=True)
        for figure in (found.edits[name].des.value, lost(before, after).value)
    ]
    total = [*found.mean.des, found.mean.plain.value, lost(stages[0], stages[-1]).value]
    last = album.drawings[-1].log_prob
    obeys = float("nan") if last is None else float(last.exp().mean())
    return [*steps, *total, *accs(found), kept(stages[0], stages[-1], album), obeys]


def formula_words(album: Album) -> Iterator[str]:
    """The word of each edit."""
    for edit in album.edits:
        yield str(edit).partition("=")[0]


def sentence(album: Album) -> Formula:
    """All edits as one sentence."""
    return album.model.formula(" & ".join(map(str, album.edits)))


def accs(found: Disentanglement) -> list[float]:
    """ACC of each attribute after all edits."""
    return [float(value) for value in found.acc[-1]]


def lost(before: Stage, after: Stage) -> Estimate:
    """The mean identity loss."""
    return estimate(identity_loss(before.embeddings, after.embeddings), mean)


def kept(before: Stage, after: Stage, album: Album) -> float:
    """The share of other words that are as they were, by the independent judge."""
    schema = album.model.schema
    words = [word for name in OTHERS if isinstance(word := schema[name], Discrete)]
    same = [
        before.others[:, schema.slice(word.name)].argmax(dim=1)
        == after.others[:, schema.slice(word.name)].argmax(dim=1)
        for word in words
    ]
    return float(torch.stack(same).float().mean())


def faces_of(album: Album) -> list[NDArray[np.uint8]]:
    """The first faces at every stage, face by face."""
    stages = [list(album.model.pictures(drawing.w[:SHOWN])) for drawing in album.drawings]
    return [stage[k] for k in range(SHOWN) for stage in stages]


def page(rows: list[tuple[str, list[NDArray[np.uint8]]]]) -> Image:
    """A row for each way and face, a column for each edit."""
    wide = len(ORDERS[0]) + 1
    edits = ("start", *ORDERS[0])
    captions = [f"{edits[k % wide]}\n{name}" for name, faces in rows for k in range(len(faces))]
    return contact_sheet([face for _, faces in rows for face in faces], captions, ABOUT, "", wide)


def draw(tables: dict[str, Table]) -> Figure:
    """DES against identity, a panel for each order."""
    figure, axes = panels(len(tables), columns=len(tables))
    for axis, table in zip(axes, tables.values(), strict=True):
        scatter(axis, table)
        tidy(axis, table.title, "identity lost, start to end", "DES")
    return figure


def scatter(axis: Axes, table: Table) -> None:
    names = list(dict.fromkeys(table.column("edited by")))
    identity = max(k for k, name in enumerate(table.columns) if name == "identity")
    for color, name in zip(COLORS, names, strict=False):
        own: list[Any] = [row for row in table.rows if row[0] == name]
        des = [row[table.columns.index("DES")] for row in own]
        axis.plot([row[identity] for row in own], des, "o", color=color, label=name)
