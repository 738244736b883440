"""The energy by hand, walks with a known end, and a density that is learned."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lace.attributes.schema import Continuous, Discrete, Schema
from lace.baselines.latent_jem import LatentJem, Replay, Walks, fit
from lace.baselines.training import Settings
from lace.errors import DataError

FREE = math.nan
GENERATOR = torch.Generator().manual_seed(0)


def jem_of(schema: Schema, dim: int = 6, walks: Walks | None = None, size: int = 0) -> LatentJem:
    jem = LatentJem(schema, dim, walks or Walks(), size)
    jem.heads.initialise(torch.Generator().manual_seed(1))
    for weight in jem.heads.weights:
        weight.data.mul_(1.5)
    return jem.requires_grad_(False)


def latents(n: int = 30, dim: int = 6) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(2))


def test_the_energy_by_hand(schema: Schema) -> None:
    """smile and hair are given, glasses is summed over; age is given and yaw counts for nothing."""
    jem, w = jem_of(schema), latents()
    values = torch.tensor([0.0, 1.0, FREE, FREE, 0.0, 0.0, 1.0, 0.3, FREE])
    f = jem.heads.logits(w)[0]
    by_hand = -f[:, 1] - f[:, 6] - (f[:, 2].exp() + f[:, 3].exp()).log() + (f[:, 7] - 0.3) ** 2 / (2 * 0.1**2)
    assert torch.allclose(jem.energy(w, values), by_hand, atol=1e-4)
    everything = -sum(f[:, part].exp().sum(dim=1).log() for part in (slice(0, 2), slice(2, 4), slice(4, 7)))
    assert torch.allclose(jem.energy(w), everything, atol=1e-4)
    assert torch.allclose(jem.energy(w, torch.full((9,), FREE)), everything, atol=1e-4)
    assert torch.allclose(jem.energy(w, values.expand(30, 9)), by_hand, atol=1e-4)


def test_classes_add_up(schema: Schema) -> None:
    """sum_c exp -E(w, c) = exp -E(w): what is free has been summed over."""
    jem, w = jem_of(schema), latents()
    rows = torch.full((3, 9), FREE)
    rows[:, 4:7] = torch.eye(3)
    each = torch.stack([-jem.energy(w, row) for row in rows])
    assert torch.allclose(each.logsumexp(dim=0), -jem.energy(w), atol=1e-4)


def straight(slope: Tensor) -> LatentJem:
    """A network that says nothing of side, and of height w . slope: all its units stay on one side of their kink."""
    jem = LatentJem(Schema([Discrete("side"), Continuous("height", 0, 1)]), 2, Walks(eta=8e-4, steps=50, noise=0.02))
    height = 1e3
    with torch.no_grad():
        for parameter in jem.heads.parameters():
            parameter.zero_()
        jem.heads.weights[0][0, :, 0] = slope
        for weight in jem.heads.weights[1:]:
            weight[0, 0, -1 if weight is jem.heads.weights[-1] else 0] = 1
        jem.heads.biases[0][0, 0, 0] = height
        jem.heads.biases[-1][0, 0, -1] = -height
    return jem.requires_grad_(False).double()


def test_walks_end_as_the_recursion_says() -> None:
    """f = a w is pulled to 0.5 by a factor q = 1 - eta a^2 / s^2 a step, and spread by noise: an autoregression."""
    slope = torch.tensor([0.6, 0.8])
    jem = straight(slope)
    start, n = torch.tensor([1.0, -1.0], dtype=torch.float64).expand(300, 2), 300
    rng = torch.Generator().manual_seed(3)
    ends = jem.walk(
        start, torch.tensor([FREE, FREE, 0.5]), lambda _: torch.randn(n, 2, generator=rng, dtype=torch.float64)
    )
    q, steps, noise = 1 - 8e-4 / 0.1**2, 50, 0.02
    along, across = ends @ slope.double(), ends @ torch.tensor([0.8, -0.6], dtype=torch.float64)
    mean, variance = 0.5 + (-0.2 - 0.5) * q**steps, noise**2 * (1 - q ** (2 * steps)) / (1 - q**2)
    assert abs(float(along.mean()) - mean) < 4 * (variance / n) ** 0.5
    assert float(along.var()) == pytest.approx(variance, rel=4 * (2 / n) ** 0.5)
    assert abs(float(across.mean()) - 1.4) < 4 * noise * (steps / n) ** 0.5
    assert float(across.var()) == pytest.approx(noise**2 * steps, rel=4 * (2 / n) ** 0.5)


def test_draws_do_not_feel_their_neighbours(schema: Schema) -> None:
    jem, w = jem_of(schema, walks=Walks(0.01, 20)), latents()
    row = torch.tensor([0.0, 1.0, *[FREE] * 7])
    many = jem.sample(row, w, 3, torch.arange(30))
    assert torch.allclose(jem.sample(row, w[4:5], 3, torch.tensor([4])), many[4:5], atol=1e-5)
    assert not torch.allclose(jem.sample(row, w[4:5], 3, torch.tensor([5])), many[4:5], atol=1e-2)


SIDES = Schema([Discrete("side")])


def two_heaps(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Side no: N((-1.2, 0), 0.6^2 I), three of four; side yes: N((1.2, 0), 0.6^2 I)."""
    yes = (torch.rand(n, generator=generator) < 0.25).float()
    w = 0.6 * torch.randn(n, 2, generator=generator)
    w[:, 0] += 2.4 * yes - 1.2
    return w, torch.stack([1 - yes, yes], dim=1)


def log_density(w: Tensor) -> Tensor:
    heaps = ((0.75, -1.2), (0.25, 1.2))
    return torch.logaddexp(*(math.log(p) - ((w[:, 0] - x).square() + w[:, 1].square()) / 0.72 for p, x in heaps))


@pytest.fixture(scope="module")
def trained() -> LatentJem:
    """Walks with the noise that their step size asks for: then the energy is that of the data."""
    w, labels = two_heaps(10_000, torch.Generator().manual_seed(0))
    jem = LatentJem(SIDES, 2, Walks(eta=0.04, steps=20, noise=(2 * 0.04) ** 0.5))
    jem.heads.initialise(torch.Generator().manual_seed(1))

    def box(n: int, generator: torch.Generator) -> Tensor:
        return (torch.rand(n, 2, generator=generator) - 0.5) * torch.tensor([6.0, 4.0])

    fit(jem, w, labels, box, Settings(batch=128, lr=2e-3, steps=400, warmup=10), Replay(1000, 0.05))
    return jem


def test_it_learns_the_density(trained: LatentJem) -> None:
    """Over data E falls as the log density rises, at a slope near one; walks end where data are, not in their box.

    Bounds lie four deviations, over other starts, from the mean: how sums are rounded is enough to make another start.
    """
    w, labels = two_heaps(1000, torch.Generator().manual_seed(5))
    energy, truth = trained.energy(w), log_density(w)
    assert float(torch.corrcoef(torch.stack([-energy, truth]))[0, 1]) > 0.95
    slope = float(((truth - truth.mean()) * -(energy - energy.mean())).mean() / truth.var())
    assert slope == pytest.approx(1, abs=0.25)
    assert float(log_density(trained.buffer).mean()) == pytest.approx(float(truth.mean()), abs=0.4)
    assert torch.allclose(trained.buffer.std(dim=0), w.std(dim=0), rtol=0.2)
    assert float((trained.heads(w).argmax(dim=1) == labels.argmax(dim=1)).float().mean()) > 0.95


def test_it_draws_what_is_asked_from_its_buffer(trained: LatentJem) -> None:
    index = torch.arange(200)
    starts = trained.remembered(0, index)
    assert 0.05 < float((starts[:, 0] > 0).float().mean()) < 0.6
    drawn = trained.sample(torch.tensor([0.0, 1.0]), starts, 0, index)
    jumped = (starts[:, 0] < 0) & (drawn[:, 0] > 0)
    assert float((drawn[:, 0] > 0).float().mean()) > 0.85
    assert int(jumped.sum()) > 30


def test_walks_that_end_go_back_into_the_buffer() -> None:
    """Without slope and noise nothing moves: the buffer changes only where walks were renewed, for a fresh start."""
    jem = LatentJem(SIDES, 2, Walks(eta=0.0, steps=1, noise=0.0))
    jem.heads.initialise(torch.Generator().manual_seed(1))
    count = iter(range(10**6))

    def numbered(n: int, generator: torch.Generator) -> Tensor:
        return torch.tensor([[float(next(count)), 0.0] for _ in range(n)])

    w, labels = two_heaps(100, torch.Generator().manual_seed(0))
    fit(jem, w, labels, numbered, Settings(batch=100, lr=1e-6, steps=20), Replay(1000, 0.05))
    kept = (jem.buffer[:, 0] < 1000).float().mean()
    assert len(jem.buffer[:, 0].unique()) == 1000
    # 2,000 walks of which one in twenty was renewed, a place twice in some 5 cases of 100.
    assert abs(1000 * (1 - float(kept)) - 95) < 4 * 10


def test_saved_networks_are_the_same(trained: LatentJem, tmp_path: Path) -> None:
    trained.half().float()
    trained.save(tmp_path / "jem.safetensors", {"note": "kept"})
    again, index = LatentJem.load(tmp_path / "jem.safetensors"), torch.arange(5)
    assert again.walks == trained.walks
    assert torch.equal(again.remembered(1, index), trained.remembered(1, index))
    row, w = torch.tensor([1.0, 0.0]), torch.zeros(5, 2)
    assert torch.equal(again.sample(row, w, 1, index), trained.sample(row, w, 1, index))


def test_numbers_alone_are_refused() -> None:
    with pytest.raises(DataError, match="with classes"):
        LatentJem(Schema([Continuous("height", 0, 1)]), 2, Walks())


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    from lace.attributes.card import write_with_card

    write_with_card(tmp_path / "other.safetensors", {"weight": torch.zeros(2)}, {"schema": SIDES.to_json()})
    with pytest.raises(DataError, match="does not hold a Latent-JEM"):
        LatentJem.load(tmp_path / "other.safetensors")
