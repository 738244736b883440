"""What tests share: a small world whose truth is known, and the real model."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

import lace
from lace.attributes.schema import Continuous, Discrete, Schema
from lace.cli import main

# Without a GPU kernels are interpreted, number by number; Triton asks when it is imported, which lace does late.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# The same examples in every run; `pytest --hypothesis-profile=default` looks for new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Tests run alike on small and large machines."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def schema() -> Schema:
    """Two yes/no words, one of three classes, two numbers."""
    return Schema(
        [
            Discrete("smile"),
            Discrete("glasses"),
            Discrete("hair", ("black", "brown", "blond")),
            Continuous("age", 0, 80, "years", sigma=5.0),
            Continuous("yaw", -50, 50, "degrees", sigma=2.0),
        ]
    )


@pytest.fixture(scope="session")
def toy() -> lace.Model:
    """A model whose probabilities are known: bright is sigmoid(2 z0), tone a number z1 with sigma 0.5, in [-6, 6]."""

    def draw(w: torch.Tensor) -> torch.Tensor:
        return w[:, :3, None, None].expand(-1, 3, 8, 8).tanh()

    def bright(w: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.zeros_like(w[:, 0]), 2 * w[:, 0]], dim=1)

    attributes = [
        (Discrete("bright"), bright),
        (Continuous("tone", -6, 6, sigma=0.5), lambda w: w[:, 1]),
        (Discrete("kind", ("a", "b", "c")), lambda w: 3 * w[:, 2:5]),
    ]
    return lace.Model(lace.FunctionGenerator(draw, latent_dim=8), attributes, bank_size=2**14)


@pytest.fixture(scope="session")
def plain() -> lace.Model:
    """A world in which edits can be worked out by hand: w = z, and words are coordinates of it.

    tall = z0 and wide = z1 in [-6, 6], sigma 0.5; high is nearly tall; round is sigmoid(2 z2).
    """

    def draw(w: torch.Tensor) -> torch.Tensor:
        return w[:, :3, None, None].expand(-1, 3, 8, 8).tanh()

    def curved(w: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.zeros_like(w[:, 2]), 2 * w[:, 2]], dim=1)

    attributes = [
        (Continuous("tall", -6, 6, sigma=0.5), lambda w: w[:, 0]),
        (Continuous("wide", -6, 6, sigma=0.5), lambda w: w[:, 1]),
        (Continuous("high", -6, 6, sigma=0.5), lambda w: 0.9 * w[:, 0] + 0.1 * w[:, 3]),
        (Discrete("round"), curved),
    ]
    return lace.Model(lace.FunctionGenerator(draw, latent_dim=6), attributes, bank_size=2**12)


@pytest.fixture(scope="session")
def ffhq() -> lace.Model:
    """The real model as it ships, whatever it was taught here; its weights are downloaded on first use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lace.attributes.words.taught", lambda model: [])
        return lace.load("ffhq", device="cpu")


def within(measured: float, truth: float, standard_error: float, errors: float = 4.0) -> bool:
    """Whether a random figure lies within so many standard errors of the truth."""
    return math.isfinite(measured) and abs(measured - truth) <= errors * standard_error


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """A command's exit code, and what it printed and complained of."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    out = capsys.readouterr()
    return code, out.out, out.err
