"""Combinations that no training latent has: what the exact samplers draw at several strictness, and the paper's.

p:      the mean probability of a term by the heads, on what was drawn
ACC:    the match of each term with what was asked (lace.metrics.accuracy), by the panel that labels
right:  the share of pictures on which the whole sentence is true, by the panel, and by the independent judge but for
        age, of which it knows nothing; a number counts within a tenth of its range
differ: the mean cosine distance of all pairs, on features of the independent judge; particles may be siblings
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..attributes.labels import read_labels
from ..attributes.schema import Discrete
from ..baselines.values import asked_values
from ..conditions.formula import And, Formula, leaves
from ..conditions.margin import margin
from ..conditions.probability import log_probability
from ..errors import UnsatisfiableCondition
from ..metrics.accuracy import accuracy
from ..metrics.bootstrap import estimate, mean
from ..metrics.diversity import cosine, diversity
from ..model import Model
from ..samplers.smc import Smc
from ..samplers.strictness import Strictness
from ..sheet import contact_sheet
from .contest import Contender
from .ffhq_logic import LABELS, truth
from .figures import COLORS, panels, tidy
from .record import Cell, Findings, Table
from .trained import missing, trained
from .viewing import Seen, Viewing

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from ..planning import Wishes

__all__ = ["ABOUT", "draw", "measure"]

ABOUT = "Faces of combinations that no training latent shows: how rare they are, what is drawn, and what judges see."

SENTENCES = {"boy": "beard & smile=no & glasses & age=15", "girl": "female & smile=no & glasses & age=10"}
PAPER = {
    "boy": "The paper's ACC: smile 0.935, glasses 0.982; StyleFlow's 0.679, 0.694.",
    "girl": "The paper's ACC: smile 0.906, glasses 0.939; StyleFlow's 0.408, 0.536.",
}
SHOWN = 4


def contenders(model: Model, quick: bool) -> list[Contender]:
    """The exact samplers from lax to strict, the paper's in both readings, and the baselines."""
    ladder = (0.0, 0.7) if quick else (0.0, 0.2, 0.4, 0.55, 0.7, 1.0)
    names = ("ode",) if quick else ("ode", "langevin")
    paper = [
        Contender(f"{name}, {reading}", {"sampler": name, "reading": reading})
        for name in names
        for reading in ("energy", "probability")
    ]
    return [*(exact(strictness, quick) for strictness in ladder), *paper, *trained(model)]


def exact(strictness: float, quick: bool) -> Contender:
    """What a strictness comes to where no draw obeys; a quick run leads fewer particles by fewer moves."""
    s = Strictness.of(strictness)
    wish: Wishes = {"sampler": Smc(128, gamma=s.gamma / (s.q or 1))} if quick else {"strictness": strictness}
    return Contender(f"exact {strictness:g}", wish)


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A table for each sentence, with a row for each contender; a page with faces of each."""
    n = SHOWN if quick else 160
    labels = truth(read_labels(LABELS, model.schema)[0], model.schema).to(model.device)
    tables, faces, captions = {}, list[Any](), list[str]()
    with Viewing(model, quick) as viewing:
        for title, sentence in SENTENCES.items():
            formula, rows = model.formula(sentence), list[tuple[Cell, ...]]()
            for contender in contenders(model, quick):
                say(f"{sentence}: {contender.name}")
                figures, shown = asked(contender, formula, n, viewing)
                rows.append((contender.name, *figures))
                faces += shown
                captions += [f"{title}, {contender.name}", *[""] * (len(shown) - 1)] if shown else []
            known = int((margin(formula, labels, model.schema) > 0).sum())
            note = NOTE.format(known=known, of=len(labels), p=model.probability(formula).probability, n=n)
            tables[title] = Table(sentence, columns(formula), rows, f"{note} {PAPER[title]}{missing()}")
    return Findings(tables, contact_sheet(faces, captions, ABOUT, "", 2 * SHOWN))


NOTE = (
    "Training latents that obey: {known} of {of:,}, by label. P(sentence) by the heads: {p:.1e}. {n} faces a row; "
    "empty: the sampler refused. right: the whole sentence, by the panel with its 95 %, and by the independent judge B "
    "but for age; years are those that the panel sees."
)


def terms(formula: Formula) -> tuple[Formula, ...]:
    """The parts of an AND, each about one word."""
    return formula.operands if isinstance(formula, And) else (formula,)


def names(formula: Formula) -> list[str]:
    return [leaf.attribute.name for leaf in leaves(formula)]


def columns(formula: Formula) -> tuple[str, ...]:
    words = names(formula)
    return (
        *("by", *(f"p {word}" for word in words), *(f"ACC {word}" for word in words)),
        *("years", "right", "low", "high", "right by B", "differ", "evaluations a latent"),
    )


def asked(
    contender: Contender, formula: Formula, n: int, viewing: Viewing
) -> tuple[list[Cell], list[NDArray[np.uint8]]]:
    """The figures of a contender, and the first faces; nothing where it refuses."""
    model = viewing.model
    try:
        drawn = contender.draw(model, formula, n, 11)
    except UnsatisfiableCondition:
        return [None] * (len(columns(formula)) - 1), []
    with torch.inference_mode():
        readings = model.heads(drawn.w)
        sure = [float(log_probability(term, readings, model.schema).exp().mean()) for term in terms(formula)]
    seen = viewing.seen(drawn.w, names(formula))
    figures = [*sure, *judged(seen, formula, model), drawn.evaluations / n if drawn.evaluations else None]
    return figures, list(model.pictures(drawn.w[:SHOWN]))


def judged(seen: Seen, formula: Formula, model: Model) -> list[Cell]:
    """ACC of each term, the mean age, how often the sentence is true, and how different the faces are."""
    scores = accuracy(seen.labels, asked_values(formula, model.schema), model.schema)
    years = model.schema.natural(seen.labels, model.schema["age"]).nanmean()  # type: ignore[arg-type]
    second = [term for term in terms(formula) if isinstance(next(leaves(term)).attribute, Discrete)]
    return [
        *(scores[name].acc.value for name in names(formula)),
        float(years),
        *estimate(right(terms(formula), seen.labels, model), mean),
        float(right(tuple(second), seen.second, model).mean()),
        diversity(cosine(seen.features)).value,
    ]


def right(parts: tuple[Formula, ...], labels: Tensor, model: Model) -> Tensor:
    """Of each row whether all parts are true by its labels."""
    values = truth(labels, model.schema)
    return (torch.stack([margin(part, values, model.schema) for part in parts]) > 0).all(dim=0).float()


def draw(tables: dict[str, Table]) -> Figure:
    """How often the whole sentence is true, contender by contender."""
    figure, axes = panels(len(tables), columns=1, width=9)
    for axis, table in zip(axes, tables.values(), strict=True):
        places = range(len(table.rows))
        for k, judge in enumerate(("right", "right by B")):
            heights = [value or 0 for value in table.column(judge)]
            label = "by the panel" if k == 0 else "by the independent judge, but for age"
            axis.bar([x + 0.3 * (k - 0.5) for x in places], heights, 0.28, color=COLORS[k], label=label)
        axis.set_xticks(places, [name.replace(", ", "\n") for name in table.column("by")])
        tidy(axis, table.title, "", "share of pictures")
    return figure
