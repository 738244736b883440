"""The public surface: sorted, importable, and one tree of errors that its docstring draws."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from typing import Any

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


def test_a_missing_extra_is_told_across_processes() -> None:
    error = lace.MissingExtraError("The judge", "label")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_examples_of_the_readme_run() -> None:
    """One after the other, as a reader would type them."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    world: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(example, "README.md", "exec"), world)
    out, model = world["out"], world["model"]
    assert out.images.shape == (16, 1024, 1024, 3)
    assert all(50 - 10 < out.values(k)["age"] < 60 + 10 for k in range(16))  # four sigmas of the head
    assert str(world["rare"]) == "(hat | bald) & ~smile & 2*yaw>20"
    assert (model.latents("hat & glasses", n=4, sampler=world["Sure"]()).log_prob.exp() > 0.9).all()
