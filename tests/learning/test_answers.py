"""What judges say, as rows of probabilities or numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lace.attributes.schema import Continuous, Discrete
from lace.errors import DataError
from lace.learning.answers import columns_of, one_row, rows_of

BEARD, HAIR, AGE = Discrete("beard"), Discrete("hair", ("black", "brown", "blond")), Continuous("age", 0, 80, "years")
NAN = math.nan


@pytest.mark.parametrize(
    ("attribute", "answers", "rows"),
    [
        (BEARD, [True, False, None], [[0, 1], [1, 0], [NAN, NAN]]),
        (BEARD, ["yes", "No", ""], [[0, 1], [1, 0], [NAN, NAN]]),
        (BEARD, np.array([0.25, 1.0, NAN]), [[0.75, 0.25], [0, 1], [NAN, NAN]]),
        (BEARD, torch.tensor([[0.25, 0.75], [1, 0]]), [[0.25, 0.75], [1, 0]]),
        (BEARD, np.array([[1], [0]]), [[0, 1], [1, 0]]),
        (HAIR, ["brown", "BLOND", None], [[0, 1, 0], [0, 0, 1], [NAN] * 3]),
        (HAIR, np.array([2, 0]), [[0, 0, 1], [1, 0, 0]]),
        (HAIR, [[0.5, 0.25, 0.25]], [[0.5, 0.25, 0.25]]),
        (AGE, [33, "41.5", NAN], [[33], [41.5], [NAN]]),
        (AGE, np.array([[90.0]]), [[90]]),
    ],
)
def test_answers_are_understood(attribute, answers, rows) -> None:
    assert np.array_equal(rows_of(attribute, answers, len(rows)), np.array(rows, dtype=float), equal_nan=True)


@pytest.mark.parametrize(
    ("attribute", "answers", "words"),
    [
        (BEARD, [0.5, 0.5], "2 answers for 3 pictures"),
        (BEARD, [37.0] * 3, "--range"),
        (BEARD, ["maybe"] * 3, "no class"),
        (BEARD, "yes", "list or an array"),
        (BEARD, {0: 1}, "list or an array"),
        (BEARD, None, "list or an array"),
        (HAIR, ["blnd"] * 3, "did you mean 'blond'"),
        (HAIR, [3] * 3, "its number from 0"),
        (HAIR, [0.5] * 3, "its number from 0"),
        (HAIR, [[0.5, 0.5, 0.5]] * 3, "add up to 1"),
        (HAIR, [[0.5, 0.5]] * 3, "2 numbers"),
        (AGE, ["old"] * 3, "0 to 80 years"),
        (AGE, [math.inf] * 3, "infinite"),
    ],
)
def test_other_answers_are_refused(attribute, answers, words: str) -> None:
    with pytest.raises(DataError, match=words):
        rows_of(attribute, answers, 3)


@given(
    attribute=st.sampled_from([BEARD, HAIR, AGE]),
    answer=st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.floats(), max_size=4)
    ),
)
def test_any_answer_is_a_row_or_a_sentence(attribute, answer) -> None:
    """Never anything but probabilities that add up, a finite number, or nothing known at all."""
    try:
        row = one_row(attribute, answer)
    except DataError as error:
        assert len(str(error)) > 20
        return
    assert len(row) == len(columns_of(attribute))
    if not np.isnan(row[0]):
        assert np.isfinite(row).all()
        assert isinstance(attribute, Continuous) or (min(row) >= 0 and sum(row) == pytest.approx(1))
    else:
        assert np.isnan(row).all()
