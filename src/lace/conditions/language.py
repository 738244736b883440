"""Sentences to formulas and back.

    or      := and  (("|" | "or") and)*
    and     := not  (("&" | "and") not)*
    not     := ("~" | "not") not | NUMBER "*" not | "(" or ")" | term
    term    := NAME | NAME "=" (NAME | NUMBER) | NAME "in" NUMBER ".." NUMBER | NAME (">" | ">=" | "<" | "<=") NUMBER

A NAME alone is a yes/no attribute that holds (``smile``) or a class that one attribute owns (``male``). ``write`` gives
a text that ``parse`` reads back as the same formula.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from ..attributes.schema import Continuous, Discrete, Schema, nearest
from ..errors import ConditionError, SentenceError, UnknownNameError
from .formula import And, Formula, Is, Near, Not, Or, Weighted, Within, describe_range

__all__ = ["parse", "write"]

TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<symbol>\.\.|>=|<=|[&|~()=<>*])|(?P<unknown>\S))"
)
KEYWORDS = {"and": "&", "or": "|", "not": "~", "in": "in"}
# Nesting past this is no sentence that anybody wrote, and would exhaust Python's stack.
DEPTH = 100
# Nor are so many words and signs, or a word of so many letters: each term is worked out for every draw.
MOST, LONGEST = 2000, 100


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    place: int


def parse(sentence: str, schema: Schema) -> Formula:
    """Read a sentence in the words of ``schema``; refuse it with the place where it goes wrong."""
    return _Parser(sentence, schema).sentence()


class _Parser:
    """Recursive descent, one method for each rule of the grammar."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema = text, schema
        self.tokens, self.depth = self._tokens(), 0

    def _tokens(self) -> list[Token]:
        tokens: list[Token] = []
        for match in TOKEN.finditer(self.text):
            kind = match.lastgroup or ""
            word, place = match[kind], match.start(kind)
            if kind == "unknown":
                raise self.error(f"'{word}' means nothing in a sentence.", place)
            if len(word) > LONGEST:
                raise self.error(f"Here are more than {LONGEST} letters or digits without a break.", place)
            if len(tokens) == MOST:
                raise self.error(f"The sentence is too long: here it has {MOST:,} words and signs already.", place)
            if kind == "name":
                word = word.lower()
                kind = "symbol" if word in KEYWORDS else kind
            tokens.append(Token(kind, KEYWORDS.get(word, word), place))
        return [*tokens, Token("end", "", len(self.text))]

    def error(self, message: str, place: int) -> ConditionError:
        return SentenceError(message).at(self.text, place)

    @property
    def next(self) -> Token:
        return self.tokens[0]

    def take(self) -> Token:
        return self.tokens.pop(0)

    def accept(self, symbol: str) -> bool:
        """Take the next token if it is this symbol."""
        found = self.next.kind == "symbol" and self.next.text == symbol
        if found:
            self.take()
        return found

    def expect(self, kind: str, message: str) -> Token:
        if self.next.kind != kind:
            raise self.error(message, self.next.place)
        return self.take()

    def sentence(self) -> Formula:
        if self.next.kind == "end":
            raise self.error("The sentence is empty; say for example: glasses & smile.", 0)
        formula = self.either()
        if self.next.kind != "end":
            if self.next.text == ")":
                raise self.error("This bracket closes nothing.", self.next.place)
            raise self.error("Put & (and) or | (or) between two terms.", self.next.place)
        return formula

    def either(self) -> Formula:
        formula = self.both()
        while self.accept("|"):
            formula = formula | self.both()
        return formula

    def both(self) -> Formula:
        formula = self.unary()
        while self.accept("&"):
            formula = formula & self.unary()
        return formula

    def unary(self) -> Formula:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.error("The sentence is nested too deeply.", self.next.place)
        try:
            return self._unary()
        finally:
            self.depth -= 1

    def _unary(self) -> Formula:
        if self.accept("~"):
            return ~self.unary()
        if self.next.kind == "number":
            return self.weighted()
        if self.next.kind == "symbol" and self.next.text == "(":
            return self.bracket()
        return self.term()

    def weighted(self) -> Formula:
        number = self.take()
        if not self.accept("*"):
            raise self.error(
                f"A number stands alone; write for example {number.text}*smile or age={number.text}.", number.place
            )
        operand = self.unary()
        return self.built(number.place, lambda: Weighted(float(number.text), operand))

    def bracket(self) -> Formula:
        place = self.take().place
        formula = self.either()
        if not self.accept(")"):
            raise self.error("This bracket is never closed.", place)
        return formula

    def term(self) -> Formula:
        name = self.expect("name", "Here a word is missing, such as smile or age>50.")
        operator = self.next.text if self.next.kind == "symbol" else ""
        if operator not in ("=", "in", "<", "<=", ">", ">="):
            return self.alone(name)
        attribute = self.attribute(name)
        self.take()
        if isinstance(attribute, Discrete):
            return self.one_class(attribute, operator, name)
        return self.ordered(attribute, operator, name)

    def attribute(self, name: Token) -> Discrete | Continuous:
        if name.text in self.schema:
            return self.schema[name.text]
        owners = self.schema.owners(name.text)
        if owners:
            raise self.error(
                f"'{name.text}' is itself a class: it stands alone, or as {owners[0].name}={name.text}.", name.place
            )
        raise self.unknown(name)

    def unknown(self, name: Token) -> ConditionError:
        if not len(self.schema):
            raise UnknownNameError(
                "This model has no words yet, so there is nothing to ask for; teach it with lace learn."
            )
        message = f"No attribute or class is called '{name.text}'{nearest(name.text, self.schema.words())}"
        return UnknownNameError(message).at(self.text, name.place)

    def alone(self, name: Token) -> Formula:
        if name.text in self.schema:
            attribute = self.schema[name.text]
            if isinstance(attribute, Discrete) and attribute.is_yes_no:
                return Is(attribute, "yes")
            example = (
                f"{name.text}={attribute.classes[0]}"
                if isinstance(attribute, Discrete)
                else f"{name.text}>{_middle(attribute)}"
            )
            raise self.error(
                f"'{name.text}' cannot stand alone: {describe_range(attribute)}. Write for example {example}.",
                name.place,
            )
        owners = self.schema.owners(name.text)
        if not owners:
            raise self.unknown(name)
        if len(owners) > 1:
            raise self.error(
                f"'{name.text}' is a class of several attributes; write for example {owners[0].name}={name.text}.",
                name.place,
            )
        return Is(owners[0], name.text)

    def one_class(self, attribute: Discrete, operator: str, name: Token) -> Formula:
        if operator != "=":
            raise self.error(f"'{attribute.name}' has no order: {describe_range(attribute)}. Use =.", name.place)
        value = self.expect("name", f"Here a class is missing: of '{attribute.name}', {describe_range(attribute)}.")
        if value.text not in attribute.classes:
            message = f"'{attribute.name}' has no class '{value.text}'{nearest(value.text, attribute.classes)}"
            raise UnknownNameError(message).at(self.text, value.place)
        return Is(attribute, value.text)

    def ordered(self, attribute: Continuous, operator: str, name: Token) -> Formula:
        first = self.number(attribute)
        if operator == "=":
            return self.built(name.place, lambda: Near(attribute, first))
        if operator == "in":
            if not self.accept(".."):
                example = f"{attribute.name} in {attribute.low:g}..{_middle(attribute)}"
                raise self.error(f"A range has two numbers: write for example {example}.", self.next.place)
            second = self.number(attribute)
            return self.built(name.place, lambda: Within(attribute, first, second))
        low, high = (first, math.inf) if ">" in operator else (-math.inf, first)
        return self.built(name.place, lambda: Within(attribute, low, high))

    def number(self, attribute: Continuous) -> float:
        token = self.expect("number", f"Here a number is missing: of '{attribute.name}', {describe_range(attribute)}.")
        value = float(token.text)
        if math.isinf(value):
            raise self.error(
                f"This number is too large: of '{attribute.name}', {describe_range(attribute)}.", token.place
            )
        return value

    def built(self, place: int, make: Callable[[], Formula]) -> Formula:
        """A formula whose value, if it is refused, is refused at its place in the sentence."""
        try:
            return make()
        except ConditionError as error:
            raise error.at(self.text, place) from None


def _middle(attribute: Continuous) -> str:
    return f"{(attribute.low + attribute.high) / 2:g}"


OR, AND, UNARY = range(3)


def write(formula: Formula, level: int = OR) -> str:
    """The sentence of a formula; ``level`` is how tightly the text around it binds."""
    match formula:
        case Or(operands):
            return _bracketed(" | ".join(write(part, AND) for part in operands), level > OR)
        case And(operands):
            return _bracketed(" & ".join(write(part, UNARY) for part in operands), level > AND)
        case Not(operand):
            return f"~{write(operand, UNARY)}"
        case Weighted(weight, operand):
            return f"{_number(weight)}*{write(operand, UNARY)}"
        case Is(attribute, value):
            return attribute.name if attribute.is_yes_no and value == "yes" else f"{attribute.name}={value}"
        case Near(attribute, value):
            return f"{attribute.name}={_number(value)}"
        case Within(attribute, low, high):
            return _range(attribute.name, low, high)
    raise TypeError(f"{type(formula).__name__} is no formula.")


def _bracketed(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def _range(name: str, low: float, high: float) -> str:
    if math.isinf(high):
        return f"{name}>{_number(low)}"
    return f"{name}<{_number(high)}" if math.isinf(low) else f"{name} in {_number(low)}..{_number(high)}"


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value)).removesuffix(".0")
