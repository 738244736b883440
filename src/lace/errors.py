"""Every error that a user can meet, as one tree.

LaceError
├── ConditionError            a sentence or formula that cannot be used
│   ├── SentenceError         the grammar stops somewhere; shows the place
│   ├── UnknownNameError      a word, class or model that nobody knows
│   └── ValueRangeError       a number outside what the attribute or option allows
├── UnsatisfiableCondition    nothing, or too little, obeys the sentence
├── UnreadableWord            a word that a model's latents do not tell, or too rare to judge
├── AddressError              not a picture's address, or not one of this folder
├── WeightsError              weights could not be had, checked or stored
├── OutputError               a result could not be written
├── MissingExtraError         an optional dependency is not installed
└── DataError                 labels, data sets or head files that do not fit

A message is one sentence that says what is wrong and what to do about it.
"""

from __future__ import annotations

from typing import Any

# Of a long sentence so many letters are shown to either side of the place where it goes wrong.
REACH = 100

__all__ = [
    "AddressError",
    "ConditionError",
    "DataError",
    "LaceError",
    "MissingExtraError",
    "OutputError",
    "SentenceError",
    "UnknownNameError",
    "UnreadableWord",
    "UnsatisfiableCondition",
    "ValueRangeError",
    "WeightsError",
]


class LaceError(Exception):
    """Base of all errors that are the user's to mend."""


class ConditionError(LaceError):
    """A sentence or formula that cannot be used."""

    def at(self, sentence: str, place: int) -> ConditionError:
        """The same error with the sentence below it and a caret under the place."""
        start, end = max(place - REACH, 0), place + REACH
        before, after = "..." if start else "", "..." if end < len(sentence) else ""
        shown = "".join(" " if letter.isspace() else letter for letter in sentence[start:end])
        self.args = (f"{self}\n  {before}{shown}{after}\n  {' ' * (len(before) + place - start)}^",)
        return self


class SentenceError(ConditionError):
    """A sentence that stops making sense at one place."""


class UnknownNameError(ConditionError):
    """A name that nobody knows, with the nearest that somebody does."""


class ValueRangeError(ConditionError):
    """A number outside what is allowed."""


class UnsatisfiableCondition(LaceError):  # noqa: N818 (what it says is no error of ours)
    """No draw, or too few draws, obey the sentence; ``estimates`` says how likely each term is."""

    def __init__(self, message: str, estimates: dict[str, float] | None = None) -> None:
        super().__init__(message)
        self.estimates: dict[str, Any] = dict(estimates or {})


class UnreadableWord(LaceError):  # noqa: N818 (what it says is no error of ours)
    """A word that cannot be taught: read no better than by chance, or with too few labels to tell."""


class AddressError(LaceError):
    """A text that is no picture's address."""


class WeightsError(LaceError):
    """Weights that could not be fetched, checked or stored."""


class OutputError(LaceError):
    """A file or folder that could not be written."""


class MissingExtraError(LaceError):
    """An optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'lace[{extra}]'.")
        self._asked = (what, extra)

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        """It may come back from another process."""
        return type(self), self._asked


class DataError(LaceError):
    """Labels, data sets or head files that do not fit."""
