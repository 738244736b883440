"""Sequential editing of the same faces: the paper's flow with and without its two aids, StyleFlow, the neighbourhood.

Faces that look ahead, do not smile, wear no glasses and are young turn, smile, age and put on glasses, in two orders,
as in the paper. Judges look at the pictures before and after every edit:

ACC:       the match with what the sequence asks for (lace.metrics.accuracy), by the panel that labels
DES:       how far each edit moves its own attribute and no other (lace.metrics.disentanglement)
identity:  1 - cosine of ArcFace's embeddings, to the picture before the edit and to the start
FD:        the Frechet distance after all edits to faces that the model draws by itself and on which the panel sees all
           that the sequence asks for, on the independent judge's features
kept:      the share of other words on which the independent judge says the same as of the start
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..attributes.schema import Discrete
from ..baselines.styleflow import StyleFlow
from ..baselines.styleflow_editing import StyleFlowEditing
from ..baselines.values import asked_values
from ..conditions.energy import SIGMA
from ..conditions.formula import And, Near, Within
from ..conditions.margin import margin
from ..drawing import Drawing
from ..editing.album import Album
from ..editing.neighbourhood import Neighbourhood
from ..editing.paper import Paper
from ..errors import UnsatisfiableCondition
from ..metrics.bootstrap import Estimate, estimate, mean
from ..metrics.disentanglement import Disentanglement, disentanglement
from ..metrics.frechet import Moments, frechet_distance, moments
from ..metrics.identity import Identity, identity_loss
from ..model import Model, load
from ..sheet import contact_sheet
from .ffhq_logic import truth
from .figures import marks, panels, tidy
from .record import Cell, Findings, Table
from .trained import BASELINES
from .trained import FOLDER as TRAINED
from .viewing import Viewing

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
# Faces drawn for the reference, for each that is edited, and how many draws each may take.
REFERENCE, RAREST = 2, 2**17


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
    if not (path := TRAINED / BASELINES["StyleFlow"]).exists():
        return []
    flow = StyleFlow.load(path).to(model.device)
    return [
        Contender("StyleFlow", StyleFlowEditing(flow)),
        Contender("StyleFlow, subset", StyleFlowEditing(flow), True),
        Contender("StyleFlow, no gains", StyleFlowEditing(flow, gains={})),
    ]


class Bench:
    """A model and those who look at its pictures; the viewing is its owner's to close."""

    def __init__(self, model: Model, viewing: Viewing) -> None:
        self.model, self.viewing = model, viewing
        self.identity = Identity.load().to(model.device)

    def seen(self, drawing: Drawing, words: tuple[str, ...]) -> Stage:
        """What all of them say of a drawing."""
        embeddings: list[Tensor] = []
        seen = self.viewing.seen(
            drawing.w, words, OTHERS, lambda faces: embeddings.append(self.identity.embed(faces).cpu())
        )
        return Stage(seen.labels, seen.second, torch.cat(embeddings), seen.features)

    def by_itself(self, edits: tuple[str, ...], n: int) -> Moments | None:
        """Of n faces drawn within reach of all that is asked, those on which the panel sees it; None of what is rarer.

        They are independent draws: particles would be siblings.
        """
        formula = And(tuple(within_reach(self.model.formula(edit)) for edit in edits))
        try:
            w = self.model.latents(formula, n, seed=9, sampler="rejection", max_draws=RAREST * n).w
        except UnsatisfiableCondition:
            return None
        seen = self.viewing.seen(w, [edit.partition("=")[0] for edit in edits])
        shown = margin(formula, truth(seen.labels, self.model.schema), self.model.schema) > 0
        return moments(seen.features[shown]) if int(shown.sum()) > 1 else None


def within_reach(edit: Formula) -> Formula:
    """The range that counts as the number asked for (lace.conditions.margin)."""
    if not isinstance(edit, Near):
        return edit
    reach = SIGMA * edit.attribute.span
    return Within(edit.attribute, edit.value - reach, edit.value + reach)


@dataclass(frozen=True)
class Stage:
    """Judged faces between two edits."""

    labels: Tensor
    others: Tensor
    embeddings: Tensor
    features: Tensor


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A table for each order: a row for each way to edit and each truncation."""
    n, psis = (6, (0.7,)) if quick else (128, (0.5, 0.7))
    tables, pages = {}, []
    for edits in ORDERS[: 1 if quick else None]:
        rows: list[tuple[Cell, ...]] = []
        for psi in psis:
            own = load(model.name, str(model.device), psi)
            with Viewing(own, quick) as viewing:
                for contender, album, figures in raced(Bench(own, viewing), edits, n, say):
                    rows.append((contender.name, psi, *figures))
                    if psi == psis[-1] and edits == ORDERS[0]:
                        pages.append((contender.name, faces_of(album)))
        names = [edit.partition("=")[0] for edit in edits]
        tables[" ".join(names)] = Table(", then ".join(edits), columns(names), rows, NOTE.format(n=n))
    return Findings(tables, page(pages))


def raced(
    bench: Bench, edits: tuple[str, ...], n: int, say: Callable[[str], None]
) -> Iterator[tuple[Contender, Album, list[Cell]]]:
    """What each contender makes of the same faces."""
    start, truly = bench.model.latents(START, n, seed=7), bench.by_itself(edits, REFERENCE * n)
    for contender in contenders(bench.model):
        say(f"{', '.join(edits)}: {contender.name}")
        album = bench.model.edit(start, edits, method=contender.method, subset=contender.subset)
        yield contender, album, scored(bench, album, truly)


NOTE = (
    "{n} faces, found by: "
    + START.replace("|", "\\|")
    + ". DES by the paper's letter; plain counts the others' change "
    "as it is. low, high: 95 % of DES. ACC is 1 - |difference| / range for numbers. obeys: by the heads. The paper, on "
    "StyleGAN2 at psi 0.5: DES 0.735, identity 0.501, ACC 0.938, 0.956, 0.881, 0.997 (yaw, smile, age, glasses), FID "
    "27.94; StyleFlow 0.569, 0.549, 0.947, 0.773, 0.817, 0.876, and 44.13. Theirs is FID to what was drawn for nothing "
    "asked; FD is to what the model draws by itself for the whole sequence, as the panel sees it. StyleFlow is raced "
    "where recipes/ffhq has trained it. The neighbourhood keeps whom a small network takes the face for, which learned "
    "from the ArcFace that measures identity; one row does without."
)


def columns(names: list[str]) -> tuple[str, ...]:
    steps = [f"{figure} +{name}" for name in names for figure in ("DES", "identity")]
    accs = [f"ACC {name}" for name in names]
    return ("edited by", "psi", *steps, "DES", "low", "high", "plain", "identity", *accs, "kept", "obeys", "FD")


def scored(bench: Bench, album: Album, truly: Moments | None) -> list[Cell]:
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
    distance = frechet_distance(moments(stages[-1].features), truly) if truly else None
    return [*steps, *total, *accs(found), kept(stages[0], stages[-1], album), obeys, distance]


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
    figure, axes = panels(len(tables), columns=len(tables), width=7.4)
    for axis, table in zip(axes, tables.values(), strict=True):
        scatter(axis, table)
        tidy(axis, table.title, "identity lost, start to end", "DES", beside=True)
    return figure


def scatter(axis: Axes, table: Table) -> None:
    names = list(dict.fromkeys(table.column("edited by")))
    identity = max(k for k, name in enumerate(table.columns) if name == "identity")
    for (color, mark), name in zip(marks(), names, strict=False):
        own: list[Any] = [row for row in table.rows if row[0] == name]
        des = [row[table.columns.index("DES")] for row in own]
        axis.plot([row[identity] for row in own], des, mark, color=color, label=name)
