"""What a judge may say of N pictures, and what is kept of it: one row of numbers for each, NaN where nothing is known.

    yes/no:   true or false, 0 or 1, "yes" or "no", p(yes), or two probabilities
    classes:  names, numbers from 0, or a probability for each class
    numbers:  in the word's own unit

None, NaN and an empty text mean that the judge cannot say. Rows hold class probabilities, or the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attributes.schema import Attribute, Continuous, Discrete, nearest
from ..errors import DataError

__all__ = ["columns_of", "one_row", "rows_of"]

Rows = NDArray[np.float64]

WORDS = {"yes": 1.0, "true": 1.0, "y": 1.0, "no": 0.0, "false": 0.0, "n": 0.0}
MISSING = {"", "nan", "none", "null", "na", "n/a"}
# By how much probabilities of classes may miss a sum of 1.
SLACK = 0.02


def columns_of(attribute: Attribute) -> tuple[str, ...]:
    """What the numbers of a row are called."""
    return ("value",) if isinstance(attribute, Continuous) else attribute.classes


def rows_of(attribute: Attribute, answers: Any, n: int) -> Rows:
    """Answers for n pictures as rows [n, columns]."""
    listed = _listed(answers)
    if len(listed) != n:
        raise DataError(f"The judge gave {len(listed)} answers for {n} pictures; it must give one for each.")
    rows = [one_row(attribute, answer) for answer in listed]
    return np.array(rows, dtype=np.float64).reshape(n, len(columns_of(attribute)))


def _listed(answers: Any) -> Sequence[Any]:
    """A list from a list, an array or a tensor."""
    if hasattr(answers, "detach"):
        answers = answers.detach().cpu()
    if hasattr(answers, "tolist"):
        answers = answers.tolist()
    if isinstance(answers, str | bytes) or not hasattr(answers, "__len__") or isinstance(answers, dict):
        kind = type(answers).__name__
        raise DataError(f"The judge gave a {kind}; it must give a list or an array with one answer a picture.")
    return list(answers)


def one_row(attribute: Attribute, answer: Any) -> list[float]:
    """One answer as a row."""
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if isinstance(answer, list | tuple) and len(answer) == 1:
        answer = answer[0]
    if answer is None or (isinstance(answer, str) and answer.strip().lower() in MISSING):
        return [float("nan")] * len(columns_of(attribute))
    if isinstance(attribute, Continuous):
        return [_finite(_number(answer, attribute), attribute)]
    if isinstance(answer, list | tuple):
        return _probabilities(attribute, answer)
    return _one_class(attribute, answer)


def _number(answer: Any, attribute: Attribute) -> float:
    try:
        return float(answer)
    except (TypeError, ValueError):
        raise DataError(f"'{answer}' is no answer for '{attribute.name}': {expected(attribute)}.") from None


def _finite(value: float, attribute: Attribute) -> float:
    if np.isinf(value):
        raise DataError(f"An infinite answer was given for '{attribute.name}'; give None where nothing is known.")
    return value


def _probabilities(attribute: Discrete, answer: Sequence[Any]) -> list[float]:
    values = [_number(one, attribute) for one in answer]
    if len(values) != attribute.columns:
        raise DataError(f"{len(values)} numbers were given for '{attribute.name}': {expected(attribute)}.")
    if any(np.isnan(value) for value in values):
        return [float("nan")] * len(values)
    total = sum(values)
    if min(values) < 0 or abs(total - 1) > SLACK:
        listed = ", ".join(f"{value:.3g}" for value in values)
        raise DataError(
            f"({listed}) was given for '{attribute.name}'; probabilities are from 0 to 1 and add up to 1 (a softmax)."
        )
    return [value / total for value in values]


def _one_class(attribute: Discrete, answer: Any) -> list[float]:
    if isinstance(answer, str):
        word = answer.strip().lower()
        if word in attribute.classes:
            return _sure(attribute, attribute.classes.index(word))
        if attribute.is_yes_no and word in WORDS:
            return _sure(attribute, int(WORDS[word]))
        if not _is_number(word):
            hint = nearest(word, attribute.classes)
            raise DataError(f"'{answer}' is no class of '{attribute.name}'{hint}")
    value = _number(answer, attribute)
    if np.isnan(value):
        return [float("nan")] * attribute.columns
    if attribute.is_yes_no and 0 <= value <= 1:
        return [1 - value, value]
    if not attribute.is_yes_no and value in range(attribute.columns):
        return _sure(attribute, int(value))
    raise DataError(f"{value:g} is no answer for '{attribute.name}': {expected(attribute)}.")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _sure(attribute: Discrete, k: int) -> list[float]:
    return [1.0 if k == column else 0.0 for column in range(attribute.columns)]


def expected(attribute: Attribute) -> str:
    """What an answer may be, for a refusal."""
    if isinstance(attribute, Continuous):
        return f"give a number from {attribute.low:g} to {attribute.high:g} {attribute.unit}".strip()
    if attribute.is_yes_no:
        return "give yes or no, or p(yes) from 0 to 1; a number in a unit needs --range LOW HIGH"
    return f"give one of {', '.join(attribute.classes)}, its number from 0, or {attribute.columns} probabilities"
