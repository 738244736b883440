"""The public surface: sorted, importable, and one tree of errors that its docstring draws."""

from __future__ import annotations

import inspect
import re

import pytest

import lace
from lace import errors


def test_all_is_sorted_and_real() -> None:
    assert lace.__all__ == sorted(lace.__all__)
    for name in lace.__all__:
        assert getattr(lace, name) is not None
    assert dir(lace) == sorted(lace.__all__)


def test_lazy_names_are_public() -> None:
    assert set(lace._LAZY) <= set(lace.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        lace.nothing  # noqa: B018


def test_every_error_is_a_lace_error_and_drawn_in_the_tree() -> None:
    classes = {
        name: value for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert all(issubclass(value, lace.LaceError) for value in classes.values())
    assert set(re.findall(r"[A-Z]\w+", errors.__doc__.split("A message")[0].split("\n\n", 1)[1])) & set(classes) == set(
        classes
    )
    assert set(classes) == set(errors.__all__) <= set(lace.__all__)


def test_doctest_of_the_readme_names() -> None:
    """Names that the README's example uses."""
    for name in ("load", "Model", "FunctionGenerator", "Discrete", "Continuous"):
        assert name in lace.__all__
