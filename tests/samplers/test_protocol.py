"""Every sampler through the same door."""

from __future__ import annotations

import pytest
import torch

from lace.samplers.base import Progress, Sampler
from lace.samplers.elliptical import Elliptical
from lace.samplers.euler import Euler
from lace.samplers.langevin import Langevin
from lace.samplers.level_set import LevelSet
from lace.samplers.ode import Ode
from lace.samplers.pc import PredictorCorrector
from lace.samplers.pcnl import Pcnl
from lace.samplers.rejection import Rejection
from lace.samplers.smc import Smc
from tests.problems import DIM, LOGISTIC

ALL = {
    "rejection": Rejection(),
    "level-set": LevelSet(0.1),
    "smc": Smc(200),
    "elliptical": Elliptical(10),
    "pcnl": Pcnl(10),
    "ode": Ode(),
    "euler": Euler(),
    "langevin": Langevin(),
    "pc": PredictorCorrector(),
}
every = pytest.mark.parametrize("sampler", ALL.values(), ids=ALL)


@every
def test_results(sampler: Sampler) -> None:
    seen: list[Progress] = []
    samples = sampler(LOGISTIC.target(), 12, seed=1, callback=seen.append)
    assert samples.z.shape == (12, DIM)
    assert bool(samples.z.isfinite().all())
    assert not samples.z.requires_grad
    assert samples.info.sampler == sampler.name
    assert samples.info.evaluations >= 12
    assert 0 < samples.info.acceptance <= 1
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == seen[-1].total == 12


@every
def test_the_same_seed_gives_the_same_first_n(sampler: Sampler) -> None:
    """For any number of results; sums round differently in other batches, and steps carry that on."""
    few, many = (sampler(LOGISTIC.target(), n, seed=2).z for n in (5, 40))
    assert torch.allclose(few, many[:5], atol=1e-4)
    assert not torch.allclose(few, sampler(LOGISTIC.target(), 5, seed=3).z, atol=0.1)


@pytest.mark.parametrize("make", [Elliptical, Pcnl, Langevin, PredictorCorrector], ids=lambda make: make.name)
def test_batches_do_not_matter(make: type[Elliptical]) -> None:
    whole, parts = (make(steps=25, batch=batch)(LOGISTIC.target(), 20, seed=4).z for batch in (64, 3))
    assert torch.allclose(whole, parts, atol=1e-4)


@every
def test_settings_say_how_it_was_made(sampler: Sampler) -> None:
    """A sampler of the same settings is the same sampler."""
    settings = sampler.settings
    assert settings
    assert not any(name.startswith("_") for name in settings)
