"""Which sampler draws a sentence, why, and what to say when none can.

The bank foretells what a sampler would keep: rejection the mean of p(c|z)^gamma, a level set the share of margins above
its threshold. ``auto`` takes rejection up to strictness 0.4 and level sets beyond; where rejection would try more than
131,072 draws (on a GPU 1,048,576), and more than particles do, it leads particles there by SMC. Where no draw of the
bank obeys there is no level to set: beyond 0.4 it leads particles that are held to the condition gamma / q times over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from torch import Tensor

from .attributes.schema import Schema
from .conditions.formula import Formula
from .conditions.margin import margin
from .conditions.probability import log_probability
from .errors import ConditionError, UnknownNameError, UnsatisfiableCondition
from .samplers.base import MAX_DRAWS, Sampler
from .samplers.elliptical import Elliptical
from .samplers.euler import Euler
from .samplers.langevin import Langevin
from .samplers.level_set import LevelSet, threshold
from .samplers.ode import Ode
from .samplers.pc import PredictorCorrector
from .samplers.pcnl import Pcnl
from .samplers.rejection import Rejection, no_energies
from .samplers.smc import Smc
from .samplers.strictness import Strictness

__all__ = ["DOUBT", "READINGS", "SAMPLERS", "Plan", "Wish", "Wishes", "percent", "plan", "unsatisfiable"]

READINGS = ("probability", "energy")
# More draws than this for one sentence are better spent on particles.
MANY = {"cpu": 2**17, "cuda": 2**20}
# Below this mean p(c|z) there is nothing to show: all of P(c) is the heads' doubt about draws that do not obey.
DOUBT = 0.01
# How often particles are evaluated, on a rare sentence, for each of them and of their moves: as often again for each
# fourfold gamma.
CLIMB = 8
# Beyond the gamma of strictness 0.4 particles end as siblings: there, moves are worth more than many of them.
FEW = {"particles": 256, "moves": 16}

# Exact in the limit, and held to the condition gamma times over; then the paper's own, also as its code does them.
KERNELS: dict[str, Callable[[float], Sampler]] = {
    "smc": lambda gamma: Smc(gamma=gamma) if gamma <= 4 else Smc(gamma=gamma, **FEW),
    "elliptical": lambda gamma: Elliptical(gamma=gamma),
    "pcnl": lambda gamma: Pcnl(gamma=gamma),
}
PAPER: dict[str, Callable[[], Sampler]] = {
    "ode": Ode,
    "ode-authors": Ode.authors,
    "euler": Euler,
    "euler-authors": Euler.authors,
    "langevin": Langevin,
    "langevin-authors": Langevin.authors,
    "pc": PredictorCorrector,
    "pc-authors": PredictorCorrector.authors,
}
SAMPLERS = ("auto", "rejection", "level-set", *KERNELS, *PAPER)


@dataclass(frozen=True)
class Wish:
    """How somebody wants a sentence drawn."""

    sampler: str | Sampler = "auto"
    strictness: float = 0.0
    reading: str = "probability"
    max_draws: int = MAX_DRAWS

    def __post_init__(self) -> None:
        if self.reading not in READINGS:
            raise UnknownNameError(f"No reading is called '{self.reading}'; there are {' and '.join(READINGS)}.")
        if not isinstance(self.sampler, Sampler) and self.sampler not in SAMPLERS:
            raise UnknownNameError(f"No sampler is called '{self.sampler}'; there are {', '.join(SAMPLERS)}.")


class Wishes(TypedDict, total=False):
    """The same as keywords."""

    sampler: str | Sampler
    strictness: float
    reading: str
    max_draws: int


@dataclass(frozen=True)
class Plan:
    """The sampler chosen for a sentence, why, how it reads the sentence, and how many draws a result should take."""

    sampler: Sampler
    why: str
    draws_each: float
    reading: str = "probability"


def plan(formula: Formula, bank: Tensor, schema: Schema, wish: Wish, n: int) -> Plan:
    """Choose a sampler for n results, from the bank's readings [size, columns]."""
    if isinstance(wish.sampler, Sampler):
        return Plan(wish.sampler, "it was given", 1.0, wish.reading)
    s = Strictness.of(wish.strictness)
    if wish.sampler == "level-set" or (wish.sampler == "auto" and s.q is not None):
        margins, q = margin(formula, bank, schema), s.q or 1.0
        if wish.sampler == "auto" and wish.reading == "probability" and not bool((margins > 0).any()):
            gamma = s.gamma / q
            return _kernel(wish, gamma, n, f"no draw of the bank obeys; the condition is held {gamma:.3g} times over")
        return _level_set(margins, q, wish)
    if wish.sampler in PAPER:
        return _papers(wish)
    if s.q is not None:
        raise ConditionError(
            f"{wish.sampler} reaches strictness 0.4; {wish.strictness:g} is for level-set, which auto takes by itself."
        )
    if wish.sampler in KERNELS:
        return _kernel(wish, s.gamma, n, "as asked")
    if wish.reading == "energy":
        if wish.sampler == "rejection":
            raise no_energies()
        return _kernel(wish, s.gamma, n, "energies are no probabilities to accept a draw by")
    exact = _rejection(log_probability(formula, bank, schema), s.gamma, wish.max_draws)
    if wish.sampler == "auto" and n * exact.draws_each > MANY.get(bank.device.type, MANY["cpu"]):
        led = _kernel(wish, s.gamma, n, f"too rare to wait for: {exact.why.rpartition(', ')[2]}")
        return led if led.draws_each < exact.draws_each else exact
    return exact


def _rejection(log_prob: Tensor, gamma: float, max_draws: int) -> Plan:
    share = float((gamma * log_prob).double().exp().mean())
    exact = "the exact posterior" if gamma == 1 else f"the condition held {gamma:.3g} times over"
    sampler = Rejection(gamma, max_draws, share=share or None)
    return Plan(sampler, f"independent draws from {exact}, {_kept(share)}", _draws(share))


def _kernel(wish: Wish, gamma: float, n: int, why: str) -> Plan:
    name = "smc" if wish.sampler == "auto" else str(wish.sampler)
    sampler = KERNELS[name](gamma)
    if isinstance(sampler, Smc):
        particles = sampler.particles
        evaluations = -(-n // particles) * particles * CLIMB * sampler.moves * (1 + math.log(max(gamma, 1), 4))
        return Plan(sampler, f"{particles} particles led to it; {why}", evaluations / n, wish.reading)
    steps = sampler.settings["steps"]
    return Plan(sampler, f"walks of {steps} moves; {why}", steps, wish.reading)


def _papers(wish: Wish) -> Plan:
    if wish.strictness:
        raise ConditionError(f"{wish.sampler} has no strictness; leave it at 0, or let auto choose.")
    sampler = PAPER[str(wish.sampler)]()
    return Plan(sampler, "the paper's; it looks for peaks and does not sample the posterior", 100.0, wish.reading)


def _level_set(margins: Tensor, q: float, wish: Wish) -> Plan:
    if wish.reading == "energy":
        raise ConditionError(
            "Level sets go by the heads' best guess and know no energies; leave out the reading, or ask for strictness "
            "up to 0.4 from smc, elliptical or pcnl."
        )
    level = threshold(margins, q) if bool((margins > 0).any()) else float("inf")
    share = float((margins >= level).double().mean())
    return Plan(
        LevelSet(level, wish.max_draws, share=share or None),
        f"the clearest {100 * q:.3g} % of the draws that obey, {_kept(share)}",
        _draws(share),
        wish.reading,
    )


def _draws(share: float) -> float:
    return 1 / share if share > 0 else float("inf")


def _kept(share: float) -> str:
    return f"about 1 draw in {1 / share:,.0f} kept" if share > 0 else "no draw of the bank kept"


def unsatisfiable(
    formula: Formula, n: int, together: float, terms: dict[str, float], tried: str
) -> UnsatisfiableCondition:
    """The refusal of a sentence that is too rare, with how rare each term is."""
    listed = ", ".join(f"{term}: {percent(p)}" for term, p in terms.items())
    all_terms = f"; together: {percent(together)}" if len(terms) > 1 else ""
    message = (
        f"{n} pictures of '{formula}' are out of reach: {tried} ({listed}{all_terms}). "
        "Ask for fewer, loosen a term, or allow more draws."
    )
    return UnsatisfiableCondition(message, {**terms, str(formula): together})


def percent(p: float) -> str:
    """A probability as people read it."""
    if p < 1e-6:
        return "< 1e-6"
    return f"{100 * p:.3g} %" if p >= 1e-4 else f"{100 * p:.2g} %"
