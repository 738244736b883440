"""The words of a model: discrete attributes with classes, continuous ones with a range in natural units.

Readings of N latents are one matrix [N, columns]: a discrete attribute owns a column of log probability for each class,
a continuous one a single column, scaled so that 0 is the low end of its range and 1 the high end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..errors import DataError, UnknownNameError

if TYPE_CHECKING:
    # Words are listed without waiting for torch to load.
    from torch import Tensor

__all__ = ["Attribute", "Continuous", "Discrete", "Schema", "nearest"]

NAME = re.compile(r"[a-z][a-z0-9_]*")
RESERVED = frozenset({"and", "or", "not", "in"})


@dataclass(frozen=True)
class Discrete:
    """One class out of several; two classes (no, yes) make a word that stands alone."""

    name: str
    classes: tuple[str, ...] = ("no", "yes")
    about: str = field(default="", compare=False)

    @property
    def columns(self) -> int:
        return len(self.classes)

    @property
    def is_yes_no(self) -> bool:
        return self.classes == ("no", "yes")


@dataclass(frozen=True)
class Continuous:
    """A number in ``unit`` between ``low`` and ``high``; ``sigma`` is the head's own error in the same unit."""

    name: str
    low: float
    high: float
    unit: str = ""
    sigma: float = field(default=float("nan"), compare=False)
    about: str = field(default="", compare=False)

    columns = 1

    @property
    def span(self) -> float:
        return self.high - self.low


Attribute = Discrete | Continuous


def nearest(word: str, known: Iterable[str]) -> str:
    """How a refusal of an unknown word ends: with the nearest known one, or with all of them."""
    names = list(known)
    if not names:
        return "; none is known."
    close = get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else f"; known are {', '.join(names)}."


class Schema:
    """The attributes of a model in column order, found by name or by a class's name."""

    def __init__(self, attributes: Iterable[Attribute]) -> None:
        self.attributes = tuple(attributes)
        self._by_name = {attribute.name: attribute for attribute in self.attributes}
        self._check()
        self._start, column = {}, 0
        for attribute in self.attributes:
            self._start[attribute.name] = column
            column += attribute.columns
        self.columns = column

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Attribute:
        if name not in self._by_name:
            raise UnknownNameError(f"No attribute is called '{name}'{nearest(name, self._by_name)}")
        return self._by_name[name]

    def slice(self, name: str) -> slice:
        """The columns of an attribute."""
        start = self._start[name]
        return slice(start, start + self._by_name[name].columns)

    def natural(self, readings: Tensor, attribute: Continuous) -> Tensor:
        """A continuous attribute's readings in its own unit."""
        return readings[:, self._start[attribute.name]] * attribute.span + attribute.low

    def owners(self, class_name: str) -> list[Discrete]:
        """The discrete attributes with a class of that name."""
        return [a for a in self.attributes if isinstance(a, Discrete) and class_name in a.classes]

    def words(self) -> list[str]:
        """Every word that may stand in a sentence: attributes, and classes of one attribute alone."""
        classes = {name for a in self.attributes if isinstance(a, Discrete) for name in a.classes}
        return [*self._by_name, *sorted(name for name in classes if len(self.owners(name)) == 1)]

    def to_json(self) -> list[dict[str, Any]]:
        """A JSON form, read back by :meth:`from_json`."""
        return [asdict(attribute) for attribute in self.attributes]

    @classmethod
    def from_json(cls, rows: list[dict[str, Any]]) -> Schema:
        """Read what :meth:`to_json` wrote."""
        try:
            return cls(_from_json(row) for row in rows)
        except (TypeError, KeyError, ValueError) as error:
            raise DataError(f"The attribute list cannot be read ({error}).") from error

    def _check(self) -> None:
        if len(self._by_name) != len(self.attributes):
            raise DataError("Two attributes have the same name; every name must be its own.")
        for attribute in self.attributes:
            names = [attribute.name, *(attribute.classes if isinstance(attribute, Discrete) else ())]
            for name in names:
                if not NAME.fullmatch(name) or name in RESERVED:
                    raise DataError(f"'{name}' cannot be a word: use small letters, digits and _, and no grammar word.")
            if isinstance(attribute, Discrete) and len(set(attribute.classes)) < max(2, len(attribute.classes)):
                raise DataError(f"'{attribute.name}' needs at least two classes, each with a name of its own.")
            if isinstance(attribute, Continuous) and not attribute.low < attribute.high:
                raise DataError(
                    f"'{attribute.name}' runs from {attribute.low} to {attribute.high}: low must be below high."
                )


def _from_json(row: dict[str, Any]) -> Attribute:
    if "classes" in row:
        return Discrete(row["name"], tuple(row["classes"]), row.get("about", ""))
    return Continuous(**row)
