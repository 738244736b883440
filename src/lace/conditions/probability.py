"""The exact log probability that a formula holds at a latent: the default reading.

Given w, attributes are independent. With l = log p:

    AND of independent parts:  l = sum_k l_k
    OR of independent parts:   l = log(1 - prod_k (1 - p_k)), built up as logaddexp(l, l_k + log(1 - p))
    NOT:                       pushed to the leaves (De Morgan), where complements are exact
    parts that share an attribute:  l = logsumexp over the attribute's cells of [log p(cell) + l given the cell]

so ``haircolor=black | haircolor=brown`` is p(black) + p(brown), ``smile & smile`` is ``smile``, and ``age>20 & age<30``
is the interval. A class has the head's probability; a range the normal distribution's, with the head's own sigma.
``age=55`` is soft evidence exp(-E), and ``k*a`` has probability p(a)^k: each is an event of its own, independent of all
others given w.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from ..attributes.schema import Attribute, Continuous, Discrete, Schema
from ..errors import ConditionError
from .energy import near_energy
from .formula import And, Formula, Is, Near, Not, Or, Weighted, Within
from .numerics import log1mexp, log_ndtr, log_normal_interval

__all__ = ["log_probability"]

# Sentences that repeat attributes in ways that need more steps than this are refused.
STEPS = 20_000

Variable = Attribute | Near | Weighted


@dataclass(frozen=True)
class Event:
    """A variable lies in a set: of classes, of disjoint intervals, or {True} or {False} for an event of its own."""

    variable: Variable
    cells: tuple[object, ...]


@dataclass(frozen=True)
class AllOf:
    parts: frozenset[Node]


@dataclass(frozen=True)
class AnyOf:
    parts: frozenset[Node]


Node = Event | AllOf | AnyOf | bool


def log_probability(formula: Formula, readings: Tensor, schema: Schema) -> Tensor:
    """log p(formula | w) for readings [N, columns]: N numbers, at most 0."""
    return _Evaluation(readings, schema).formula(formula)


class _Evaluation:
    """One set of readings; every part of a formula is worked out once."""

    def __init__(self, readings: Tensor, schema: Schema) -> None:
        self.readings, self.schema = readings, schema
        self.known: dict[Node, Tensor] = {}

    def formula(self, formula: Formula) -> Tensor:
        return self.node(positive(formula))

    def node(self, node: Node) -> Tensor:
        if node not in self.known:
            if len(self.known) > STEPS:
                raise ConditionError(
                    "The sentence repeats its attributes in too many ways to be worked out; simplify it."
                )
            # Rounding may leave a log just above zero.
            self.known[node] = self._node(node).clamp(max=0.0)
        return self.known[node]

    def _node(self, node: Node) -> Tensor:
        if isinstance(node, bool):
            return self.readings.new_full((len(self.readings),), 0.0 if node else -math.inf)
        if isinstance(node, Event):
            return self.event(node)
        groups = independent_groups(node.parts)
        logs = [self.group(group, type(node)) for group in groups]
        return sum_logs(logs) if isinstance(node, AllOf) else any_logs(logs)

    def group(self, parts: list[Node], kind: type[AllOf] | type[AnyOf]) -> Tensor:
        """Parts tied together by shared attributes: the most shared one is summed over."""
        if len(parts) == 1:
            return self.node(parts[0])
        shared = most_shared(parts)
        terms = []
        for cell in partition(shared, parts):
            rest = join(kind, [given(part, shared, cell) for part in parts])
            if rest is not False:
                terms.append(self.event(Event(shared, cell)) + self.node(rest))
        return torch.stack(terms).logsumexp(dim=0) if terms else self.node(False)

    def event(self, event: Event) -> Tensor:
        match event.variable:
            case Discrete(name=name):
                first = self.schema.slice(name).start
                chosen = [self.readings[:, first + event.variable.classes.index(str(cell))] for cell in event.cells]
                return chosen[0] if len(chosen) == 1 else torch.stack(chosen).logsumexp(dim=0)
            case Continuous() as attribute:
                return torch.stack([self.interval(attribute, *cell) for cell in event.cells]).logsumexp(dim=0)  # type: ignore[misc]
            case Near() as near:
                log = -near_energy(near, self.schema.natural(self.readings, near.attribute))
            case Weighted(weight, operand):
                log = weight * self.formula(operand)
        return log if event.cells == (True,) else log1mexp(log)

    def interval(self, attribute: Continuous, low: float, high: float) -> Tensor:
        value = self.schema.natural(self.readings, attribute)
        # A range with one end is a tail, which costs a fifth of what lies between two ends.
        if low == -math.inf:
            return log_ndtr((high - value) / attribute.sigma)
        if high == math.inf:
            return log_ndtr((value - low) / attribute.sigma)
        return log_normal_interval((low - value) / attribute.sigma, (high - value) / attribute.sigma)


def positive(formula: Formula, negated: bool = False) -> Node:
    """Events under AND and OR only: a NOT passes down, swapping the two, and turns events into their complements."""
    match formula:
        case Not(operand):
            return positive(operand, not negated)
        case And(operands) | Or(operands):
            kind = AllOf if isinstance(formula, And) != negated else AnyOf
            return join(kind, [positive(part, negated) for part in operands])
        case Is(attribute, value):
            return Event(attribute, tuple(name for name in attribute.classes if (name == value) != negated))
        case Within(attribute, low, high):
            return Event(attribute, _outside(low, high) if negated else ((low, high),))
        case Near() | Weighted():
            return Event(formula, (not negated,))
    raise TypeError(f"{type(formula).__name__} is no formula.")


def _outside(low: float, high: float) -> tuple[tuple[float, float], ...]:
    sides = ((-math.inf, low), (high, math.inf))
    return tuple(side for side in sides if side[0] < side[1])


def join(kind: type[AllOf] | type[AnyOf], parts: list[Node]) -> Node:
    """AllOf or any of the parts, with what is already certain taken out."""
    decided = kind is AnyOf
    if any(part is decided for part in parts):
        return decided
    open_parts = frozenset(part for part in parts if not isinstance(part, bool))
    if not open_parts:
        return not decided
    return next(iter(open_parts)) if len(open_parts) == 1 else kind(open_parts)


def variables(node: Node) -> Counter[Variable]:
    """How often each variable occurs."""
    if isinstance(node, bool):
        return Counter()
    if isinstance(node, Event):
        return Counter([node.variable])
    return sum((variables(part) for part in node.parts), Counter())


def independent_groups(parts: frozenset[Node]) -> list[list[Node]]:
    """Split parts into groups that share no variable."""
    groups: list[tuple[set[Variable], list[Node]]] = []
    for part in sorted(parts, key=repr):
        names, members = set(variables(part)), [part]
        for group in [group for group in groups if group[0] & names]:
            groups.remove(group)
            names |= group[0]
            members = group[1] + members
        groups.append((names, members))
    return [members for _, members in groups]


def most_shared(parts: list[Node]) -> Variable:
    """The variable that the most parts speak of."""
    spoken = Counter(name for part in parts for name in variables(part))
    return max(sorted(spoken, key=repr), key=lambda name: spoken[name])


def events_of(node: Node, variable: Variable) -> set[Event]:
    if isinstance(node, Event):
        return {node} if node.variable == variable else set()
    return set() if isinstance(node, bool) else set().union(*(events_of(part, variable) for part in node.parts))


def partition(variable: Variable, parts: list[Node]) -> list[tuple[object, ...]]:
    """The coarsest cells of a variable on which each of its events is decided."""
    events = sorted(set().union(*(events_of(part, variable) for part in parts)), key=repr)
    if isinstance(variable, Continuous):
        cuts = sorted({bound for event in events for cell in event.cells for bound in cell} | {-math.inf, math.inf})  # type: ignore[attr-defined]
        atoms: list[object] = list(pairwise(cuts))
    else:
        atoms = list(variable.classes) if isinstance(variable, Discrete) else [True, False]
    alike: dict[tuple[bool, ...], list[object]] = {}
    for atom in atoms:
        alike.setdefault(tuple(holds(event, (atom,)) for event in events), []).append(atom)
    return [tuple(cells) for cells in alike.values()]


def holds(event: Event, cell: tuple[object, ...]) -> bool:
    """Whether an event that contains a cell wholly or not at all contains it."""
    if isinstance(event.variable, Continuous):
        low, high = cell[0]  # type: ignore[misc]
        return any(a <= low and high <= b for a, b in event.cells)  # type: ignore[misc, has-type]
    return cell[0] in event.cells


def given(node: Node, variable: Variable, cell: tuple[object, ...]) -> Node:
    """The node once the variable is known to lie in the cell."""
    if isinstance(node, Event):
        return holds(node, cell) if node.variable == variable else node
    if isinstance(node, bool):
        return node
    return join(type(node), [given(part, variable, cell) for part in node.parts])


def sum_logs(logs: list[Tensor]) -> Tensor:
    return torch.stack(logs).sum(dim=0)


def any_logs(logs: list[Tensor]) -> Tensor:
    """log(1 - prod (1 - p_k)), exact also where every p_k is tiny."""
    total = logs[0]
    for log in logs[1:]:
        total = torch.logaddexp(total, log + log1mexp(total))
    return total
