from __future__ import annotations

import math

import pytest
import torch

import lace
from lace.editing.keep import tied
from lace.editing.neighbourhood import Neighbourhood

from ..conftest import within

START = torch.tensor([0.5, -1.0, 0.3, 0.8, -0.4, 1.2])
# The tolerance of "tall=2": a tenth of the range from -6 to 6.
REACH = 1.2
# Five of the errors of the numbers' heads.
LOOSE = 2.5


def test_draws_are_those_of_the_posterior(plain: lace.Model) -> None:
    """All terms are squares here, so the posterior is normal: its precisions add up, coordinate by coordinate."""
    amount, hold, keep, still, n = 0.3, 60.0, 12.5, 1.0, 3000
    album = plain.edit(START.expand(n, -1), "tall=1", method=Neighbourhood(amount, hold, keep, still, moves=200))
    z = album.drawings[1].z.double()
    r, s2 = math.cos(amount * math.pi / 2), math.sin(amount * math.pi / 2) ** 2
    # Pulls: the neighbourhood's and the still term's; the edit's on tall; the kept word's on wide.
    precision = torch.full((6,), 1 + still, dtype=torch.float64)
    pull = (r + still) * START.double()
    precision[0] += hold / REACH**2
    pull[0] += hold / REACH**2
    precision[1] += keep / LOOSE**2
    pull[1] += keep / LOOSE**2 * START[1]
    mean, variance = pull / precision, s2 / precision
    for k in (0, 1, 3, 4, 5):
        assert within(float(z[:, k].mean()), float(mean[k]), math.sqrt(float(variance[k]) / n))
        assert within(float(z[:, k].var()), float(variance[k]), float(variance[k]) * math.sqrt(2 / n))


def test_without_amount_it_is_the_peak(plain: lace.Model) -> None:
    hold, keep, still = 60.0, 0.5, 1.0
    z = plain.edit(START[None], "tall=1", method=Neighbourhood(0, hold, keep, still)).drawings[1].z[0]
    weight = hold / REACH**2
    peak = (weight + (1 + still) * START[0]) / (weight + 1 + still)
    assert float(z[0]) == pytest.approx(float(peak), abs=0.02)
    assert torch.allclose(z[[1, 3, 4, 5]], START[[1, 3, 4, 5]], atol=0.02)


def test_a_picture_that_does_not_obey_is_held_harder(plain: lace.Model) -> None:
    """At hold 0.01 the neighbourhood would win; the same edit with a start that obeys stays where it is."""
    far, near = torch.tensor([-2.0, 0, 0, 0, 0, 0]), torch.tensor([1.0, 0, 0, 0, 0, 0])
    album = plain.edit(torch.stack([far, near]), "tall=1", method=Neighbourhood(0, hold=1.0, still=0.0))
    moved = album.drawings[1].z
    # 2^3 doublings: the weight that pulls is 8 / 1.44 against 1, as often as it may be doubled before the last climb.
    assert float(moved[0, 0]) == pytest.approx((8 / REACH**2 - 2) / (8 / REACH**2 + 1), abs=0.02)
    assert float(moved[1, 0]) == pytest.approx(1.0, abs=1e-3)


def test_pictures_do_not_feel_each_other(plain: lace.Model) -> None:
    starts = plain.generator.prior(3, torch.arange(4))
    together = plain.edit(starts, ["tall=1", "round"], amount=0.0).drawings[-1].z
    alone = torch.cat([plain.edit(row[None], ["tall=1", "round"], amount=0.0).drawings[-1].z for row in starts])
    assert torch.allclose(together, alone, atol=1e-4)


def test_a_chain_ends_where_one_edit_of_all_would(plain: lace.Model) -> None:
    """The neighbourhood is that of the first picture, so that nothing adds up on the way."""
    chain = plain.edit(START[None], ["tall=2", "round", "wide=1"], amount=0.0)
    once = plain.edit(START[None], "tall=2 & round & wide=1", amount=0.0)
    assert torch.allclose(chain.drawings[-1].z, once.drawings[-1].z, atol=0.02)
    assert (chain.drawings[-1].z - START).abs().max() > 1


def test_words_that_move_together_are_not_held(plain: lace.Model) -> None:
    assert tied(plain, {"tall"}) == {"tall", "high"}
    assert tied(plain, {"round"}) == {"round"}
    assert tied(plain, {"round", "high"}) == {"round", "high", "tall"}


def test_the_rest_stays(plain: lace.Model) -> None:
    """wide is kept within 0.15, as 1 + 50 / LOOSE^2 says, though the neighbourhood alone would let it go by 0.45."""
    starts = START.expand(200, -1)
    album = plain.edit(starts, "round", method=Neighbourhood(0.3, keep=50.0, still=0.0))
    free = plain.edit(starts, "round", method=Neighbourhood(0.3, keep=0.0, still=0.0))
    assert float((album.drawings[1].z[:, 1] - START[1]).std()) == pytest.approx(0.45 / 3, rel=0.2)
    assert float((free.drawings[1].z[:, 1] - START[1]).std()) > 0.35


def test_the_person_is_kept(plain: lace.Model) -> None:
    """Whom a picture shows turns with z0, as a vector of the plane: the peak is the lowest of a million places."""

    def likeness(w: torch.Tensor) -> torch.Tensor:
        return torch.stack([w[:, 0].cos(), w[:, 0].sin()], dim=1)

    known = lace.Model(plain.generator, plain.heads, bank_size=2**12, likeness=likeness)
    method = Neighbourhood(0, hold=1.0, keep=0.0, still=1.0, alike=25.0)
    found = known.edit(START[None], "tall=3", method=method).drawings[1].z[0, 0]
    z0, start = torch.linspace(-3, 3, 1_000_001), float(START[0])
    # It does not obey to 0.99: hold doubles three times before the last climb.
    cost = 8 * ((z0 - 3) / REACH) ** 2 / 2 + 2 * (z0 - start) ** 2 / 2 + 25 * (1 - (z0 - start).cos())
    assert float(found) == pytest.approx(float(z0[cost.argmin()]), abs=0.01)


@pytest.mark.parametrize("settings", [{"amount": -0.1}, {"amount": math.nan}, {"hold": 0.0}, {"still": -1.0}])
def test_settings_are_checked(settings: dict[str, float]) -> None:
    with pytest.raises(lace.ValueRangeError):
        Neighbourhood(**settings)
