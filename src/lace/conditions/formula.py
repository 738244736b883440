"""The tree of a sentence, built by the parser or by Python's operators.

    a & b    a | b    ~a    2 * a

Leaves say what an attribute shall be: one of its classes (``Is``), near a number (``Near``), or inside a range
(``Within``). Trees are immutable, hashable, equal when they are the same, and print as the sentence that makes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..attributes.schema import Attribute, Continuous, Discrete
from ..errors import ConditionError, ValueRangeError

# Weights beyond these make any probability 0 or 1.
LIGHTEST, HEAVIEST = 1e-6, 1e6

__all__ = ["And", "Formula", "Is", "Leaf", "Near", "Not", "Or", "Weighted", "Within", "leaves"]


class Formula:
    """A condition on attributes; combine with ``&``, ``|``, ``~`` and a positive factor."""

    def __and__(self, other: Formula) -> Formula:
        return And((self, _formula(other)))

    def __or__(self, other: Formula) -> Formula:
        return Or((self, _formula(other)))

    def __invert__(self) -> Formula:
        return Not(self)

    def __rmul__(self, weight: float) -> Formula:
        return Weighted(float(weight), self)

    __mul__ = __rmul__

    def __bool__(self) -> bool:
        raise ConditionError(
            "A condition is neither true nor false in Python: use &, | and ~ in place of and, or and not."
        )

    def __str__(self) -> str:
        from .language import write

        return write(self)

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, repr=False)
class Is(Formula):
    """A discrete attribute is of one class."""

    attribute: Discrete
    value: str


@dataclass(frozen=True, repr=False)
class Near(Formula):
    """A continuous attribute is near a number: soft evidence, exp of minus the paper's energy."""

    attribute: Continuous
    value: float

    def __post_init__(self) -> None:
        _inside(self.attribute, self.value)


@dataclass(frozen=True, repr=False)
class Within(Formula):
    """A continuous attribute lies between two numbers; one of them may be infinite."""

    attribute: Continuous
    low: float
    high: float

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if not math.isinf(bound):
                _inside(self.attribute, bound)
        if math.isinf(self.low) and math.isinf(self.high):
            raise ValueRangeError(f"A range of {self.attribute.name} needs a number on one side at least.")
        if not self.low < self.high:
            raise ValueRangeError(
                f"{self.attribute.name} in {self.low:g}..{self.high:g} is empty: the first number must be the smaller."
            )


@dataclass(frozen=True, repr=False)
class Not(Formula):
    """The operand does not hold."""

    operand: Formula


@dataclass(frozen=True, repr=False)
class And(Formula):
    """All operands hold."""

    operands: tuple[Formula, ...]

    def __post_init__(self) -> None:
        _flatten(self)


@dataclass(frozen=True, repr=False)
class Or(Formula):
    """At least one operand holds."""

    operands: tuple[Formula, ...]

    def __post_init__(self) -> None:
        _flatten(self)


@dataclass(frozen=True, repr=False)
class Weighted(Formula):
    """The operand, held to more (weight above 1) or less strictly: its probability to the power of the weight."""

    weight: float
    operand: Formula

    def __post_init__(self) -> None:
        if not LIGHTEST <= self.weight <= HEAVIEST:
            raise ValueRangeError(
                f"A weight must be a positive number from {LIGHTEST:g} to {HEAVIEST:,.0f}, not {self.weight:g}."
            )


Leaf = Is | Near | Within


def leaves(formula: Formula) -> Iterator[Leaf]:
    """The leaves of a tree from left to right."""
    match formula:
        case Not(operand) | Weighted(_, operand):
            yield from leaves(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from leaves(operand)
        case Is() | Near() | Within():
            yield formula


def describe_range(attribute: Attribute) -> str:
    """What an attribute can be, for a refusal."""
    if isinstance(attribute, Discrete):
        return f"its classes are {', '.join(attribute.classes)}"
    unit = f" {attribute.unit}" if attribute.unit else ""
    return f"it runs from {attribute.low:g} to {attribute.high:g}{unit}"


def _inside(attribute: Continuous, value: float) -> None:
    if not attribute.low <= value <= attribute.high:
        raise ValueRangeError(f"{attribute.name} cannot be {value:g}: {describe_range(attribute)}.")


def _formula(other: object) -> Formula:
    if not isinstance(other, Formula):
        raise ConditionError(f"Only conditions can be combined; {other!r} is a {type(other).__name__}.")
    return other


def _flatten(chain: And | Or) -> None:
    """Make a & (b & c) one AND of three: brackets inside a chain mean nothing."""
    inner = [part.operands if isinstance(part, type(chain)) else (part,) for part in chain.operands]
    object.__setattr__(chain, "operands", tuple(part for parts in inner for part in parts))
    if len(chain.operands) < 2:
        raise ConditionError(f"{type(chain).__name__} joins two conditions or more.")
