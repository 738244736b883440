"""How fast latents and pictures come, stage by stage, and how far each stage is from what the chip could do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..attributes.heads import MlpHeads
from ..conditions.energy import energy
from ..conditions.probability import log_probability
from ..errors import UnsatisfiableCondition
from ..generators.mapping import StyleGenerator
from ..model import Model
from ..report import evidence
from ..samplers.base import Target
from ..samplers.ode import Ode
from .figures import COLORS, panels, tidy
from .record import Cell, Findings, Table
from .timing import Cost, Peak, cost, median_seconds, peak

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ABOUT", "draw", "measure"]

ABOUT = "How fast latents and pictures come, and how far each stage is from what this machine could do at best."

# From every face to one in ten million.
LADDER = (
    "~bald",
    "smile",
    "glasses",
    "glasses & smile & ~male",
    "glasses & smile & ~male & age in 40..60",
    "glasses & smile & ~male & age>60",
    "glasses & smile & ~male & age>60 & yaw>5",
    "glasses & smile & ~male & age>60 & yaw>14",
    "glasses & smile & ~male & age>60 & yaw>20",
    "glasses & smile & ~male & age>60 & yaw>26",
)
COMMON = LADDER[3]
# What the paper times, in its order of attributes.
PAPERS = ("glasses", "female & smile & age=55")
WORDS = ("glasses", "age=55", "smile", "female", "yaw=10")
WALKS = ("ode", "ode-authors", "euler", "langevin", "pc")
BATCH = 16


@dataclass(frozen=True)
class Clock:
    """A model to time: every run of a sentence has a seed of its own, so that none is answered from the bank."""

    model: Model
    repeats: int
    budget: float
    seeds: Iterator[int]

    def latents(self, sentence: str, n: int = BATCH, sampler: str = "auto", seed: int | None = None) -> float:
        def work() -> object:
            return self.model.latents(sentence, n, next(self.seeds) if seed is None else seed, sampler=sampler)

        return self.of(work)

    def of(self, work: Callable[[], object]) -> float:
        return median_seconds(work, self.model.device, self.repeats, self.budget)


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """All tables; ``say`` is told what is being measured."""
    clock = Clock(model, *((3, 1.0) if quick else (25, 4.0)), count(1))
    parts = {"rarity": rarity, "paper": papers, "attributes": by_attributes, "batch": by_batch, "stages": stages}
    tables = {}
    for name, part in parts.items():
        say(name)
        tables[name] = part(clock, quick)
    return Findings(tables)


def rarity(clock: Clock, quick: bool) -> Table:
    """Latents for 16 faces, from common sentences to rare ones."""
    rows = []
    for sentence in LADDER[::3] if quick else LADDER:
        for sampler in ("rejection", "smc"):
            rows.append((sentence, *rare(clock, sentence, sampler)))
    return Table(
        "Latents for 16 faces, by how rare the sentence is",
        ("sentence", "P", "sampler", "evaluations", "milliseconds"),
        [row for row in rows if row[-1] is not None],
        "P is the bank's estimate, or the particles' own where the bank holds fewer than thirty such faces. "
        "Evaluations are those of a first run, milliseconds those of later ones: scouts climb a sentence once.",
    )


def rare(clock: Clock, sentence: str, sampler: str) -> tuple[float | None, str, int | None, float | None]:
    """One cell of the ladder; empty where the sampler cannot reach it."""
    try:
        drawing = clock.model.latents(sentence, BATCH, 0, sampler=sampler)
    except UnsatisfiableCondition:
        return None, sampler, None, None
    assert drawing.info is not None
    counted, banked = evidence(drawing.info), clock.model.probability(sentence)
    p = counted if counted and banked.probability * len(clock.model.bank.readings) < 30 else banked
    seconds = clock.latents(sentence, sampler=sampler)
    return p.probability, sampler, drawing.info.evaluations, 1000 * seconds


def papers(clock: Clock, quick: bool) -> Table:
    """The paper's two sentences by its samplers and by ours."""
    rows: list[tuple[Cell, ...]] = []
    for sentence in PAPERS:
        for sampler in ("auto", *WALKS):
            info = clock.model.latents(sentence, BATCH, 1, sampler=sampler).info
            assert info is not None
            rows.append(
                (
                    sentence,
                    info.sampler if sampler == "auto" else sampler,
                    info.evaluations / BATCH,
                    1000 * clock.latents(sentence, sampler=sampler),
                )
            )
        rows.append((sentence, "from the bank", None, 1000 * clock.latents(sentence, seed=0)))
    return Table(
        "Latents for 16 faces, the paper's sentences",
        ("sentence", "sampler", "evaluations a walk", "milliseconds"),
        rows,
        "The paper reports 0.68 s and 4.81 s by its ODE on a V100.",
    )


def member(heads: MlpHeads, k: int) -> MlpHeads:
    """One network of an ensemble, as heads of its own."""
    one = MlpHeads(heads.schema, heads.weights[0].shape[1], heads.speakers[k : k + 1].cpu())
    state = {name: value[k : k + 1] if name != "temperature" else value for name, value in heads.state_dict().items()}
    one.load_state_dict(state)
    return one.requires_grad_(False).to(heads.temperature.device)


def arrangements(model: Model, words: tuple[str, ...]) -> dict[str, Target]:
    """The paper's energy of the same words, worked out in three ways."""
    # What ships; words that were taught come behind it.
    shipped = model.heads.parts[0]
    assert isinstance(shipped, MlpHeads)
    one, formulas = member(shipped, 0), [model.formula(word) for word in words]
    whole = model.formula(" & ".join(words))

    def separate(z: Tensor) -> Tensor:
        read = [energy(formula, one(model.generator.to_w(z)), model.schema) for formula in formulas]
        return -torch.stack(read).sum(dim=0)

    def single(z: Tensor) -> Tensor:
        return -energy(whole, one(model.generator.to_w(z)), model.schema)

    def ensemble(z: Tensor) -> Tensor:
        return -energy(whole, model.read(z), model.schema)

    functions = {"separate": separate, "single": single, "ensemble": ensemble}
    return {
        name: Target(model.generator.latent_dim, function, function, model.device, is_probability=False)
        for name, function in functions.items()
    }


def by_attributes(clock: Clock, quick: bool) -> Table:
    """The paper's table of one to five attributes."""
    rows: list[tuple[Cell, ...]] = []
    for k in range(1, len(WORDS) + 1, 2 if quick else 1):
        targets = arrangements(clock.model, WORDS[:k])
        times = [1000 * clock.of(lambda t=target: Ode()(t, BATCH, next(clock.seeds))) for target in targets.values()]  # type: ignore[misc]
        sentence = " & ".join(WORDS[:k])
        rows.append((k, sentence, *times, 1000 * clock.latents(sentence)))
    return Table(
        "Milliseconds for 16 latents by the paper's ODE, by the number of attributes",
        ("attributes", "sentence", "separate", "single", "ensemble", "auto"),
        rows,
        "separate: a network and a mapping for each attribute, as in the paper. single: one network for all. ensemble: "
        "our five networks, stacked, on one mapping. auto: the exact sampler. The paper has 0.68, 2.34, 4.36, 6.65, "
        "7.84 s for separate and 0.68, 1.70, 2.25, 2.58, 2.63 s for single networks (V100).",
    )


def by_batch(clock: Clock, quick: bool) -> Table:
    """From one latent to thousands."""
    sizes = [4**k for k in range(0, 5 if quick else 7)]
    rows = [(n, 1000 * (seconds := clock.latents(COMMON, n)), n / seconds) for n in sizes]
    return Table(
        f"Latents of '{COMMON}', by how many are asked for", ("latents", "milliseconds", "latents a second"), rows
    )


def stages(clock: Clock, quick: bool) -> Table:
    """Each stage of 16 faces on its own; what a GPU records beside it, at the cost of what it records."""
    model, generator = clock.model, clock.model.generator
    index, formula, target = torch.arange(1024, device=model.device), model.formula(COMMON), model.target(COMMON)
    single = generator.draw if isinstance(generator, StyleGenerator) else generator.to_picture
    with torch.inference_mode():
        z = generator.prior(1, index)
        w = generator.to_w(z)
        readings, few = model.heads(w), w[:BATCH]
        best = peak(model.device, torch.float32)
        works: dict[str, Callable[[], object]] = {
            "noise, 1024 draws": lambda: generator.prior(1, index),
            "mapping, 1024 draws": lambda: generator.to_w(z),
            "heads, 1024 draws": lambda: model.heads(w),
            "formula, 1024 draws": lambda: log_probability(formula, readings, model.schema),
            "16 pictures, single precision": lambda: single(few),
        }
        rows = [stage(name, clock, best, cost(work), work) for name, work in works.items()]
        whole = cost(lambda: target.log_prob(z))
        rows.append(stage("p(sentence), 1024 draws", clock, best, whole, lambda: target.value(z)))
        note = f"Peak here: {best.operations / 1e12:.3g} TFLOP/s in single precision, {best.moved / 1e9:.4g} GB/s."
        if model.device.type == "cuda":
            best, needs = peak(model.device, torch.float16), cost(lambda: single(few))
            halved = Cost(needs.operations, needs.moved / 2)
            rows.append(stage("16 pictures, half precision", clock, best, halved, lambda: generator.to_picture(few)))
            note += f" Half precision: {best.operations / 1e12:.3g} TFLOP/s; "
            note += difference(single(few), generator.to_picture(few))
    return Table("The stages", ("stage", "GFLOP", "MB", "milliseconds", "floor", "times the floor"), rows, note)


def stage(
    name: str, clock: Clock, best: Peak, needs: Cost, work: Callable[[], object]
) -> tuple[str, float, float, float, float, float | None]:
    seconds, least = clock.of(work), best.floor(needs)
    times = seconds / least if least else None
    return name, needs.operations / 1e9, needs.moved / 1e6, 1000 * seconds, 1000 * least, times


def difference(pictures: Tensor, others: Tensor) -> str:
    """How far pictures are from others, in steps of eight bits."""
    steps = 127.5 * (pictures.clamp(-1, 1) - others.clamp(-1, 1))
    ratio = 20 * math.log10(255 / float(steps.square().mean().sqrt()))
    return f"its pictures differ by {float(steps.abs().mean()):.2g} of 255 steps on average, {ratio:.3g} dB."


def draw(tables: dict[str, Table]) -> Figure:
    """Time against rarity, against attributes and against the batch."""
    figure, (left, middle, right) = panels(3, columns=3)
    table = tables["rarity"]
    for color, sampler in zip(COLORS, ("rejection", "smc"), strict=False):
        own = [row for row in table.rows if row[2] == sampler]
        left.loglog([row[1] for row in own], [row[4] for row in own], "o-", color=color, label=sampler)
    left.invert_xaxis()
    tidy(left, "Latents for 16 faces", "P(sentence)", "milliseconds")
    table = tables["attributes"]
    for color, name in zip(COLORS, ("separate", "single", "ensemble", "auto"), strict=False):
        label = f"ode, {name}" if name != "auto" else "exact"
        middle.semilogy(table.column("attributes"), table.column(name), "o-", color=color, label=label)
    tidy(middle, "The paper's ODE, and the exact sampler", "attributes in the sentence", "milliseconds")
    table = tables["batch"]
    right.loglog(table.column("latents"), table.column("latents a second"), "o-", color=COLORS[0])
    tidy(right, f"'{COMMON}'", "latents asked for", "latents a second", legend=False)
    return figure
