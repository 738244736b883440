"""The paper's table of conditional sampling on faces: its samplers, its baselines, and the exact ones.

ACC:  the match with what each picture was asked for (lace.metrics.accuracy), every combination asked for as often as
      any other, by the panel that labels; B is the independent judge, who knows no ages
FD:   the Frechet distance to what the model draws when nothing is asked, of pictures asked for combinations as often as
      it draws them, on B's features
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ..baselines.values import asked_values
from ..catalog import FFHQ_HEADS
from ..metrics.accuracy import ALL, accuracy
from ..metrics.frechet import Moments, frechet_distance, moments
from ..metrics.jury import FEATURES
from ..model import Model
from ..samplers.base import Walk
from ..samplers.langevin import Langevin
from ..samplers.ode import Ode
from ..samplers.pc import PredictorCorrector
from ..sheet import contact_sheet
from .contest import Contender, drawn, needed
from .figures import COLORS, marks, panels, tidy
from .gallery import Asked, own_latents
from .record import Cell, Findings, Table
from .timing import median_seconds
from .trained import Trained, missing, trained
from .viewing import Seen, Viewing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

__all__ = ["ABOUT", "PAPER", "draw", "measure"]

ABOUT = "Faces asked for by one word and by three: the paper's samplers and baselines, and the exact samplers."

SHOWN = 4


@dataclass(frozen=True)
class Question:
    """Words that are asked for in every combination, numbers at these values; ``timed`` is what the paper times."""

    words: tuple[str, ...]
    numbers: dict[str, tuple[float, ...]]
    timed: str

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.words, *self.numbers)

    def asked(self, model: Model, quick: bool) -> Asked:
        """All combinations; a quick run takes few values of a number."""
        numbers = {name: values[1::5] if quick else values for name, values in self.numbers.items()}
        return Asked.uniform(model, *self.words, **numbers)


# The paper asks for 0.2 to 0.8 of its scale of 72 years, in nine steps.
AGES = tuple(range(15, 60, 5))
QUESTIONS = {
    "glasses": Question(("glasses",), {}, "glasses"),
    "gender_smile_age": Question(("gender", "smile"), {"age": AGES}, "female & smile & age=55"),
}


class Published(NamedTuple):
    """The paper's figures: minutes to train, seconds a batch of 16, FID, and ACC of each word."""

    minutes: float
    seconds: float
    fid: float
    acc: tuple[float, ...]


PAPER = {
    "glasses": {
        "StyleFlow": Published(50, 0.61, 42.08, (0.899,)),
        "Latent-JEM, eta 0.1": Published(15, 0.69, 22.83, (0.765,)),
        "Latent-JEM, eta 0.01": Published(15, 0.69, 21.58, (0.750,)),
        "pc, N = 100": Published(2, 1.29, 21.48, (0.943,)),
        "pc, N = 200": Published(2, 2.20, 21.38, (0.925,)),
        "langevin": Published(2, 1.15, 20.92, (0.998,)),
        "ode": Published(2, 0.68, 20.93, (0.998,)),
    },
    "gender_smile_age": {
        "StyleFlow": Published(50, 0.61, 43.88, (0.718, 0.870, 0.874)),
        "Latent-JEM, eta 0.1": Published(15, 0.93, 22.74, (0.878, 0.953, 0.843)),
        "Latent-JEM, eta 0.01": Published(15, 0.93, 21.98, (0.755, 0.946, 0.831)),
        "pc, N = 100": Published(2, 2.65, 24.31, (0.951, 0.922, 0.896)),
        "pc, N = 200": Published(2, 4.62, 23.86, (0.949, 0.914, 0.894)),
        "langevin": Published(2, 2.40, 22.97, (0.955, 0.960, 0.913)),
        "ode": Published(2, 4.81, 24.52, (0.969, 0.982, 0.914)),
    },
}
OWN = "nothing asked"


def contenders(model: Model, quick: bool) -> list[Contender]:
    """The paper's, those trained, and the exact ones from lax to strict."""
    walks: dict[str, Walk] = {"ode": Ode()}
    if not quick:
        walks |= {"langevin": Langevin(), "langevin-authors": Langevin.authors()}
        walks |= {f"pc, N = {steps}": PredictorCorrector(steps) for steps in (100, 200)}
    paper = [Contender(name, {"sampler": walk, "reading": "energy"}) for name, walk in walks.items()]
    ladder = (0.0, 0.4) if quick else (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    return [*trained(model), *paper, *(Contender(f"exact {s:g}", {"strictness": s}) for s in ladder)]


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A table for each question, with a row for each contender; a page with pictures of what the paper shows."""
    n, own = (12, 48) if quick else (400, 2048)
    found, tables = contenders(model, quick), {}
    times = timed(model, found, 1.0 if quick else 1.5, say)
    with Viewing(model, quick) as viewing:
        say("the model's own pictures")
        features = viewing.seen(own_latents(model, own + n), ()).features
        reference, nearest = moments(features[:own]), moments(features[own:])
        for title, question in QUESTIONS.items():
            asked = question.asked(model, quick)
            nothing = (None, None, frechet_distance(nearest, reference))
            rows: list[tuple[Cell, ...]] = [(OWN, *nothing, *[None] * (len(columns(question)) - 4))]
            for contender in found:
                say(f"{title}: {contender.name}")
                costs = (training(contender), times[title, contender.name])
                figures = scored(contender, asked, n, viewing, reference)
                rows.append((contender.name, *costs, *figures, *published(title, contender.name)))
            tables[title] = Table(title, columns(question), rows, note(n, own))
    return Findings(tables, page(model, found))


def columns(question: Question) -> tuple[str, ...]:
    """One for each figure of each word."""
    acc = [f"{figure} {word}" for word in question.names for figure in ("ACC", "low", "high", "B")]
    acc = [name for name in acc if name.removeprefix("B ") not in question.numbers]
    errors = [f"off by, {name}" for name in question.numbers]
    paper = ("paper: min", "paper: s", "paper: FID", *(f"paper: ACC {word}" for word in question.names))
    return (
        "by",
        "training s",
        "s for 16 latents",
        "FD",
        *acc,
        *errors,
        "all",
        "all low",
        "all high",
        "all by B",
        *paper,
    )


def note(n: int, own: int) -> str:
    return (
        f"{n} pictures a figure. ACC is the panel's, with its 95 %; B the independent judge's, who knows no ages. ACC "
        "of a number is 1 - |difference| / range, off by is the mean difference in its unit; all is the product. FD to "
        f"{own} pictures for which nothing was asked: {FEATURES}; '{OWN}' is that of {n} others. Seconds are of "
        "latents alone, for what the paper times. All but the baselines were trained as one: their heads are the same. "
        f"The paper's figures are of StyleGAN2 on a V100, pictures included, and its distance is FID.{missing()}"
    )


def timed(
    model: Model, found: Sequence[Contender], budget: float, say: Callable[[str], None]
) -> dict[tuple[str, str], float]:
    """Seconds for 16 latents, before anything else keeps the machine busy."""
    times = {}
    for title, question in QUESTIONS.items():
        for contender in found:
            say(f"{title}: the time of {contender.name}")
            # Not seed 0, whose first draws the bank knows.
            draw = partial(contender.draw, model, question.timed, 16, 1)
            times[title, contender.name] = median_seconds(draw, model.device, 5, budget)
    return times


def training(contender: Contender) -> float | None:
    """The seconds of its training, from the card of its weights; all but the baselines live on the shipped heads."""
    if isinstance(contender, Trained):
        return contender.seconds
    card = json.loads(FFHQ_HEADS.with_name("card.json").read_text())
    return float(card["measured"][card["kind"]]["seconds"])


def published(title: str, name: str) -> tuple[Cell, ...]:
    """The paper's figures of a contender, where it has them."""
    found = PAPER[title].get(name)
    return (*found[:3], *found.acc) if found else (None,) * (3 + len(QUESTIONS[title].names))


def scored(contender: Contender, asked: Asked, n: int, viewing: Viewing, reference: Moments) -> list[Cell]:
    """FD of pictures asked for as the model draws them, and ACC of those asked for uniformly."""
    model, questions = viewing.model, (asked, asked.as_the_model_draws(viewing.model))
    needs = needed(questions, n)
    parts = drawn(contender, asked, needs, model)
    names = [word.name for word in asked.words]
    seen = viewing.seen(torch.cat([part.w[:count] for part, count in zip(parts, needs, strict=True)]), names)
    uniform, own = (taken(needs, question.counts(n)) for question in questions)
    values = torch.stack([asked_values(model.formula(sentence), model.schema) for sentence in asked.sentences()])
    rows = values.repeat_interleave(torch.tensor(needs), dim=0)[uniform]
    return [frechet_distance(moments(seen.features[own]), reference), *acc(seen[uniform], rows, model, names)]


def taken(needs: Sequence[int], counts: Sequence[int]) -> Tensor:
    """The rows of the first so many of each combination, of which there are as many as were needed."""
    return torch.cat([torch.arange(need) < count for need, count in zip(needs, counts, strict=True)])


def acc(seen: Seen, asked: Tensor, model: Model, names: Sequence[str]) -> list[Cell]:
    """ACC of each word and of all, in the order of the columns."""
    panel, second = (accuracy(rows, asked, model.schema) for rows in (seen.labels, seen.second))
    words, errors = list[Cell](), list[Cell]()
    for name in names:
        words += panel[name].acc
        if error := panel[name].error:
            errors.append(error.value)
        else:
            words.append(second[name].acc.value)
    # The independent judge has a say in all only where it has one in each.
    together = None if errors else second[ALL].acc.value
    return [*words, *errors, *panel[ALL].acc, together]


def page(model: Model, found: Sequence[Contender]) -> Image:
    """A row for each contender: faces of what the paper shows, one question beside the other."""
    faces, captions = list[Any](), list[str]()
    for contender in found:
        for question in QUESTIONS.values():
            faces += model.pictures(contender.draw(model, question.timed, SHOWN, 3).w)
            captions += [f"{contender.name}\n{question.timed}", *[""] * (SHOWN - 1)]
    return contact_sheet(faces, captions, ABOUT, "", SHOWN * len(QUESTIONS))


def draw(tables: dict[str, Table]) -> Figure:
    """ACC of everything asked for against FD, a panel for each question."""
    figure, axes = panels(len(tables))
    for axis, table in zip(axes, tables.values(), strict=True):
        scatter(axis, table)
        tidy(
            axis,
            table.title.replace("_", ", "),
            "Frechet distance to the model's own",
            "ACC of all that was asked",
            beside=True,
        )
    return figure


def scatter(axis: Axes, table: Table) -> None:
    rows = [
        (name, distance, right)
        for name, distance, right in zip(*map(table.column, ("by", "FD", "all")), strict=True)
        if name != OWN
    ]
    exact = [row for row in rows if row[0].startswith("exact")]
    axis.plot([x for _, x, _ in exact], [y for *_, y in exact], "o-", color=COLORS[0], label="exact, by strictness")
    for (color, mark), (name, x, y) in zip(marks(1), (row for row in rows if row not in exact), strict=False):
        axis.plot([x], [y], mark, color=color, label=name)
    for name, x, y in (exact[0], exact[-1]):
        axis.annotate(name.removeprefix("exact "), (x, y), textcoords="offset points", xytext=(5, -10))
    (nearest,) = (x for name, x in zip(*map(table.column, ("by", "FD")), strict=True) if name == OWN)
    axis.axvline(nearest, color="#77736d", linestyle=":", label=OWN)
