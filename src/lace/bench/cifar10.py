"""The paper's Table 1, on CIFAR-10: every sampler asked for each class as often, beside what the paper says of it.

right:    the share of pictures on which a judge sees the class that was asked; A labelled what the heads learned from
FD:       the Frechet distance on judge B's features: to CIFAR-10's training set, and to the model's own pictures
64, ms:   how long 64 pictures of one class take, latents and pictures

The paper's FID is on other features, of another generator, over more pictures: compare it within its column only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..attributes.card import read_card
from ..attributes.heads import MlpHeads
from ..baselines.latent_jem import LatentJem
from ..baselines.values import asked_values
from ..catalog import entries
from ..errors import DataError, UnsatisfiableCondition
from ..metrics.bootstrap import interval, mean
from ..metrics.frechet import Moments, frechet_distance, moments
from ..model import Model
from ..samplers.base import Walk
from ..samplers.euler import Euler
from ..samplers.langevin import Langevin
from ..samplers.ode import Ode
from ..samplers.pc import PredictorCorrector
from ..sheet import contact_sheet
from . import spaces
from .contest import Contender, drawn
from .figures import COLORS, panels, tidy
from .gallery import JUDGES, Asked, Gallery, Wall
from .record import Cell, Findings, Table
from .speed import member
from .timing import median_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from PIL.Image import Image

    from ..planning import Wishes

__all__ = ["ABOUT", "draw", "measure"]

ABOUT = "The paper's Table 1: each class of CIFAR-10 by every sampler, how right, how near, how fast."

WORD = "class"
BASELINES = Path("recipes/cifar10/baselines")
COLUMNS = (
    *("method", "training s", "64, ms", "FD to CIFAR-10", "FD to its own", "right by A", "right by B", "low", "high"),
    *("paper: training min", "64, s", "FID", "ACC"),
)
# Training in minutes, seconds for 64 pictures, FID and ACC, on a V100.
PAPER: dict[str, tuple[float, float, float, float]] = {
    "langevin": (4, 0.68, 4.30, 0.939),
    "ode": (4, 0.50, 6.63, 0.972),
    "pc, N=100": (4, 0.84, 2.99, 0.747),
    "pc, N=200": (4, 1.86, 2.94, 0.722),
    "euler, 1e-2": (4, 0.68, 6.31, 0.969),
    "euler, 1e-3": (4, 6.80, 5.36, 0.964),
    "Latent-JEM, replay, eta=0.1": (21, 0.63, 8.75, 0.950),
    "Latent-JEM, replay, eta=0.01": (21, 0.63, 5.65, 0.821),
}
QUOTED: dict[str, tuple[float, float, float, float]] = {
    "JEM": (2160, 135, 52.35, 0.645),
    "Cond-EBM": (2280, 24.5, 41.72, 0.792),
    "VP-SDE": (52800, 438, 19.13, 0.643),
    "VE-SDE": (52800, 448, 2.97, 0.662),
}
# Level sets of the clearest hundredth of a tenth look at many draws; a quick run gives up sooner.
DRAWS, QUICK_DRAWS = 2**24, 2**16
# What a quick run tries of the paper's.
QUICK = ("langevin", "ode")
SHOWN = 8
FRONTIER = "exact"


@dataclass(frozen=True)
class Bench:
    """A gallery with CIFAR-10 itself beside the model's own pictures."""

    gallery: Gallery
    real: Moments
    n: int
    repeats: int

    @property
    def model(self) -> Model:
        return self.gallery.model

    @cached_property
    def asked(self) -> Asked:
        return Asked.uniform(self.model, WORD)

    def figures(self, wall: Wall) -> tuple[Cell, ...]:
        """Both distances, and how right both judges find a wall."""
        a, b = wall.right("labeller"), wall.right("independent")
        far = frechet_distance(moments(wall.features), self.real)
        return far, self.gallery.distance(wall), float(a.mean()), float(b.mean()), *interval(b, mean)

    def timed(self, latents: Callable[[int], Tensor]) -> float:
        """Milliseconds for 64 pictures out of w that come for a seed, one never used before in each run."""
        seeds = count(1000)

        def work() -> object:
            return self.model.generator.to_picture(latents(next(seeds)))

        with torch.no_grad():
            return 1000 * median_seconds(work, self.model.device, self.repeats, self.repeats / 2)

    def row(
        self, name: str, seconds: float | None, wall: Wall, latents: Callable[[int], Tensor], paper: str = ""
    ) -> tuple[Cell, ...]:
        """A line of the table."""
        said: tuple[Cell, ...] = PAPER.get(paper or name, (None,) * 4)
        return name, seconds, self.timed(latents), *self.figures(wall), *said


def reference(folder: Path) -> Moments:
    """The training set's moments on the independent judge's features, which the recipe left beside the judges."""
    path = folder / "reference.safetensors"
    try:
        tensors = load_file(path)
        return Moments(tensors["mean"].double(), tensors["covariance"].double())
    except (OSError, SafetensorError, KeyError) as error:
        raise DataError(f"{path} cannot be read ({error}); recipes/cifar10/judge_generator.py writes it.") from error


def opened(model: Model, quick: bool) -> Bench:
    """The gallery of a model that has classes."""
    n, own, repeats = (100, 200, 1) if quick else (10_000, 10_000, 10)
    spaces.words_of(model)
    real = Moments(*(part.to(model.device) for part in reference(Path(JUDGES.format(model.name)))))
    return Bench(Gallery.opened(model, own, own), real, n, repeats)


def contenders(quick: bool) -> Iterator[Contender]:
    """Strictness step by step, and the paper's samplers with the settings of its tables."""
    for s in (0.0, 0.7) if quick else tuple(k / 10 for k in range(11)):
        yield Contender(f"{FRONTIER} {s:g}", {"strictness": s, "max_draws": QUICK_DRAWS if quick else DRAWS})
    walks: dict[str, Walk] = {
        "langevin": Langevin(),
        "ode": Ode(),
        "pc, N=100": PredictorCorrector(100),
        "pc, N=200": PredictorCorrector(200),
        "euler, 1e-2": Euler(1e-2),
        "euler, 1e-3": Euler(1e-3),
        "langevin-authors": Langevin.authors(),
        "pc-authors, N=100": PredictorCorrector.authors(100),
        "pc-authors, N=200": PredictorCorrector.authors(200),
    }
    yield from (Contender(name, {"sampler": walk}) for name, walk in walks.items() if not quick or name in QUICK)


def sampled(bench: Bench, contender: Contender, seconds: float | None, paper: str = "") -> tuple[Cell, ...]:
    """A sampler's line; an empty one where it refuses."""
    try:
        parts = drawn(contender, bench.asked, bench.asked.counts(bench.n), bench.model)
    except UnsatisfiableCondition:
        return contender.name, seconds, *(None,) * 7, *PAPER.get(paper or contender.name, (None,) * 4)
    sentence = next(bench.asked.sentences())

    def latents(seed: int) -> Tensor:
        return bench.model.latents(sentence, 64, seed, **contender.wish).w

    wall = Wall(bench.asked, [bench.gallery.judged(part.w) for part in parts])
    return bench.row(contender.name, seconds, wall, latents, paper)


def single(bench: Bench) -> Bench:
    """The same with one network in place of the ensemble, as the paper has it."""
    model = bench.model
    heads = model.heads.parts[0]
    assert isinstance(heads, MlpHeads)
    one = Model(model.generator, member(heads, 0), model.device, model.name)
    return Bench(Gallery(one, bench.gallery.jury, bench.gallery.own, bench.gallery.pool), bench.real, bench.n, 10)


def baseline(bench: Bench, path: Path) -> tuple[Cell, ...]:
    """A Latent-JEM's line."""
    card, jem = read_card(path), LatentJem.load(path).to(bench.model.device)
    if card.get("model") != bench.model.generator.weights_identity:
        raise DataError(f"{path} was trained for another generator; train it again with train_class_jem.py.")
    start, _, eta = path.stem.partition("-")
    name = f"Latent-JEM, {start}, eta={eta}"

    def latents(sentence: str, n: int, seed: int) -> Tensor:
        index = torch.arange(n, device=bench.model.device)
        generator = bench.model.generator
        starts = jem.remembered(seed, index) if len(jem.buffer) else generator.to_w(generator.prior(seed, index))
        row = asked_values(bench.model.formula(sentence), jem.schema).to(starts)
        return jem.sample(row, starts, seed, index)

    sentences, counts = list(bench.asked.sentences()), bench.asked.counts(bench.n)
    ends = [latents(*each, 1 + k) for k, each in enumerate(zip(sentences, counts, strict=True))]
    wall = Wall(bench.asked, [bench.gallery.judged(w) for w in ends])
    return bench.row(name, card["seconds"], wall, lambda seed: latents(sentences[0], 64, seed))


def unconditional(bench: Bench) -> tuple[Cell, ...]:
    """The model when nothing is asked: what its distance to CIFAR-10 would be at best."""
    features = bench.gallery.pool.features[: bench.n]
    own = moments(bench.gallery.own.features[: bench.n])
    far, near = (frechet_distance(moments(features), other) for other in (bench.real, own))
    generator = bench.model.generator
    index = torch.arange(64, device=bench.model.device)
    milliseconds = bench.timed(lambda seed: generator.to_w(generator.prior(seed, index)))
    return "nothing asked", None, milliseconds, far, near, *(None,) * 8


def chosen(bench: Bench) -> tuple[Cell, ...]:
    """The model's own pictures as judge A sorts them."""
    wall = bench.gallery.chosen(bench.asked, len(bench.gallery.pool) // 2)
    return "chosen by A", None, None, *bench.figures(wall), *(None,) * 4


def trained(model: Model) -> dict[str, float | None]:
    """Seconds that the heads' training took, of one network and of the ensemble."""
    entry = entries().get(model.name)
    card = read_card(entry.heads) if entry and entry.heads else {}
    return {"single": None, "ensemble": None, **card.get("seconds", {})}


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """The table, the comparison of spaces, and a page with pictures of each class."""
    say("the model's own pictures")
    bench = opened(model, quick)
    seconds, rows = trained(model), [unconditional(bench), chosen(bench)]
    for contender in contenders(quick):
        say(contender.name)
        rows.append(sampled(bench, contender, seconds["ensemble"]))
    say("ode, one network")
    rows.append(sampled(single(bench), Contender("ode, one network", {"sampler": Ode()}), seconds["single"], "ode"))
    for path in sorted(BASELINES.glob("*.safetensors")):
        say(path.stem)
        rows.append(baseline(bench, path))
    rows += [(f"{name} (quoted)", *(None,) * 8, *said) for name, said in QUOTED.items()]
    note = (
        f"{bench.n:,} pictures a row; empty where a sampler refused. low, high: 95 % of B's figure. "
        f"FD: {bench.gallery.jury.features}. Columns of the paper are its own, measured on a V100 with another "
        "generator and with FID; quoted rows are nothing else."
    )
    table = Table("Table 1", COLUMNS, rows, note)
    say("spaces")
    return Findings({"table": table, **spaces.measure(model, quick, say).tables}, page(model))


def page(model: Model) -> Image:
    """A row for each class: exactly drawn to the left, the clearest tenth in the middle, by the paper's flow right."""
    ways: dict[str, Wishes] = {"exact": {}, "strictness 0.7": {"strictness": 0.7}, "ode": {"sampler": "ode"}}
    pictures: list[NDArray[np.uint8]] = []
    captions: list[str] = []
    for sentence in Asked.uniform(model, WORD).sentences():
        for name, wish in ways.items():
            pictures += shown(model, sentence, wish)
            captions += [f"{sentence.removeprefix('class=')}, {name}", *[""] * (SHOWN - 1)]
    return contact_sheet(pictures, captions, ABOUT, "", len(ways) * SHOWN)


def shown(model: Model, sentence: str, wish: Wishes) -> list[NDArray[np.uint8]]:
    """Pictures of a sentence; blanks where the sampler refuses."""
    try:
        return list(model.pictures(model.latents(sentence, SHOWN, seed=7, **wish).w))
    except UnsatisfiableCondition:
        return [np.full((32, 32, 3), 255, np.uint8)] * SHOWN


def draw(tables: dict[str, Table]) -> Figure:
    """Right against near, and the time that 64 pictures take."""
    figure, (near, fast) = panels(2)
    rows: list[Any] = [row for row in tables["table"].rows if row[6] is not None]
    exact = [row for row in rows if str(row[0]).startswith(FRONTIER)]
    near.plot([row[3] for row in exact], [row[6] for row in exact], "o-", color=COLORS[0], label="exact, by strictness")
    fast.semilogx([row[2] for row in exact], [row[6] for row in exact], "o", color=COLORS[0], label="exact")
    others = [row for row in rows if row not in exact]
    for k, row in enumerate(others):
        style: dict[str, Any] = {
            "marker": "o^sDv*"[k // 7 % 6],
            "color": COLORS[1 + k % 7],
            "linestyle": "",
            "label": str(row[0]),
        }
        near.plot([row[3]], [row[6]], **style)
        if row[2] is not None:
            fast.semilogx([row[2]], [row[6]], **style)
    tidy(near, "How right, how near", "Frechet distance to CIFAR-10", "right by judge B")
    tidy(fast, "How right, how fast", "milliseconds for 64 pictures", "right by judge B", legend=False)
    near.legend(fontsize=6)
    return figure
