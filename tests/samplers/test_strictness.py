"""Strictness: where it starts and ends, and that accuracy rises with it on a problem in closed form."""

from __future__ import annotations

import itertools

import pytest
import torch

from lace.errors import ValueRangeError
from lace.samplers.level_set import LevelSet, threshold
from lace.samplers.rejection import Rejection
from lace.samplers.strictness import Strictness
from tests.problems import AXIS, LOGISTIC


def test_landmarks() -> None:
    assert Strictness.of(0) == Strictness(1.0, None)
    assert Strictness.of(0.4) == Strictness(4.0, None)
    assert Strictness.of(1).q == pytest.approx(0.01)
    assert Strictness.of(0.7).q == pytest.approx(0.1)


def test_gamma_rises_and_q_falls() -> None:
    steps = [Strictness.of(k / 100) for k in range(101)]
    gammas = [step.gamma for step in steps if step.q is None]
    levels = [step.q for step in steps if step.q is not None]
    assert gammas == sorted(gammas)
    assert levels == sorted(levels, reverse=True)
    assert levels[0] <= 1


@pytest.mark.parametrize("bad", [-0.01, 1.01, float("nan")])
def test_outside_is_refused(bad: float) -> None:
    with pytest.raises(ValueRangeError):
        Strictness.of(bad)


def test_accuracy_rises() -> None:
    """E[p(c|z)] over what is drawn, on 2,000 samples each; the standard error is below 0.006."""
    target = LOGISTIC.target()
    bank = target.prior(99, torch.arange(100_000)) @ AXIS
    accuracies = []
    for k in range(11):
        s = Strictness.of(k / 10)
        sampler = Rejection(s.gamma) if s.q is None else LevelSet(threshold(LOGISTIC.margin(bank), s.q))
        x = sampler(target, 2000, seed=1).z @ AXIS
        accuracies.append(float(LOGISTIC.log_prob(x).exp().mean()))
    assert all(later > earlier - 0.012 for earlier, later in itertools.pairwise(accuracies))
    assert accuracies[-1] > accuracies[4] + 0.05 > accuracies[0] + 0.1
