"""Which sampler draws a sentence, why, and what to say when none can.

The bank foretells what a sampler would keep: rejection the mean of p(c|z)^gamma, a level set the share of margins above
its threshold. ``auto`` takes rejection up to strictness 0.4 and level sets beyond.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .attributes.schema import Schema
from .conditions.formula import Formula
from .conditions.margin import margin
from .conditions.probability import log_probability
from .errors import ConditionError, UnknownNameError, UnsatisfiableCondition
from .samplers.base import Sampler
from .samplers.level_set import LevelSet, threshold
from .samplers.rejection import Rejection
from .samplers.strictness import Strictness

__all__ = ["SAMPLERS", "Plan", "percent", "plan", "unsatisfiable"]

SAMPLERS = ("auto", "rejection", "level-set")


@dataclass(frozen=True)
class Plan:
    """The sampler chosen for a sentence, why, and how many draws a result should take."""

    sampler: Sampler
    why: str
    draws_each: float


def plan(
    formula: Formula, bank: Tensor, schema: Schema, sampler: str | Sampler, strictness: float, max_draws: int
) -> Plan:
    """Choose a sampler by name and strictness, from the bank's readings [size, columns]."""
    if isinstance(sampler, Sampler):
        return Plan(sampler, "it was given", 1.0)
    if sampler not in SAMPLERS:
        raise UnknownNameError(f"No sampler is called '{sampler}'; there are {', '.join(SAMPLERS)}.")
    s = Strictness.of(strictness)
    if sampler == "rejection" and s.q is not None:
        raise ConditionError(
            f"rejection reaches strictness 0.4; {strictness:g} is for level-set, which auto takes by itself."
        )
    if sampler == "level-set" or s.q is not None:
        return _level_set(margin(formula, bank, schema), s.q or 1.0, max_draws)
    return _rejection(log_probability(formula, bank, schema), s.gamma, max_draws)


def _rejection(log_prob: Tensor, gamma: float, max_draws: int) -> Plan:
    share = float((gamma * log_prob).double().exp().mean())
    exact = "the exact posterior" if gamma == 1 else f"the condition held {gamma:.3g} times over"
    return Plan(Rejection(gamma, max_draws), f"independent draws from {exact}, {_kept(share)}", _draws(share))


def _level_set(margins: Tensor, q: float, max_draws: int) -> Plan:
    level = threshold(margins, q) if bool((margins > 0).any()) else float("inf")
    share = float((margins >= level).double().mean())
    return Plan(
        LevelSet(level, max_draws),
        f"the clearest {100 * q:.3g} % of the draws that obey, {_kept(share)}",
        _draws(share),
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
        f"{n} pictures of '{formula}' are out of reach: {tried} ({listed}{all_terms}). Ask for fewer or loosen a term."
    )
    return UnsatisfiableCondition(message, {**terms, str(formula): together})


def percent(p: float) -> str:
    """A probability as people read it."""
    if p < 1e-6:
        return "< 1e-6"
    return f"{100 * p:.3g} %" if p >= 1e-4 else f"{p:.1e}"
