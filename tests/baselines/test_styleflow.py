"""The flow against exact Jacobians, integrals and a mixture whose moments are known."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lace.attributes.schema import Continuous, Discrete, Schema
from lace.baselines.styleflow import MovingNorm, StyleFlow, Velocity, fit, unit_probes
from lace.baselines.training import Settings
from lace.errors import DataError

SCHEMA = Schema([Discrete("side"), Continuous("height", -1, 1)])
ROWS = 40


def lively(dim: int = 4, hidden: int = 8) -> StyleFlow:
    """A flow in double precision that is far from the identity, with norms that have seen data."""
    rng = torch.Generator().manual_seed(0)
    flow = StyleFlow(SCHEMA, dim, torch.rand(50, 3, generator=rng), hidden).initialise(rng).double()
    with torch.no_grad():
        for weight in flow.velocity.weights:
            weight.mul_(2.5)
        flow.root_time.fill_(1.2)
        for norm in (flow.first, flow.last):
            norm.scale.normal_(0, 0.3, generator=rng)
            norm.shift.normal_(generator=rng)
            norm.mean.normal_(generator=rng)
            norm.variance.uniform_(0.3, 3, generator=rng)
    return flow.requires_grad_(False).eval()


def data(n: int = ROWS, dim: int = 4) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(1)
    side = torch.rand(n, 1, generator=rng, dtype=torch.float64).round()
    height = torch.rand(n, 1, generator=rng, dtype=torch.float64)
    return torch.randn(n, dim, generator=rng, dtype=torch.float64), torch.cat([1 - side, side, height], dim=1)


def test_as_many_parameters_as_the_authors_model() -> None:
    """1,691,649 of them, for 512 numbers and 17 conditions, as a log of the authors' code says."""
    schema = Schema([Continuous(f"c{k}", 0, 1) for k in range(17)])
    flow = StyleFlow(schema, 512, torch.rand(9, 17))
    assert sum(parameter.numel() for parameter in flow.parameters()) == 1_691_649


def layer_by_layer(net: Velocity, x: Tensor, t: Tensor, c: Tensor) -> Tensor:
    """(W x + b) sigmoid(G [t, c] + g) + H [t, c], one layer after the other."""
    about, widths = torch.cat([t[:, None], c], dim=1), [len(weight) for weight in net.weights]
    parts = (net.biases, net.gates.weight, net.gates.bias, net.shifts.weight)
    for k, (weight, bias, big, small, shift) in enumerate(
        zip(net.weights, *(part.split(widths) for part in parts), strict=True)
    ):
        x = x.tanh() if k else x
        x = (x @ weight.T + bias) * torch.sigmoid(about @ big.T + small) + about @ shift.T
    return x


def test_the_network_is_the_papers_and_carries_tangents() -> None:
    net, (x, _) = lively().velocity, data()
    rng = torch.Generator().manual_seed(2)
    t, c = torch.rand(ROWS, generator=rng).double(), torch.randn(ROWS, 2, generator=rng).double()
    tangents = torch.randn(3, ROWS, 4, generator=rng).double()
    value, carried = net(x, t, c, tangents)
    assert torch.allclose(value, layer_by_layer(net, x, t, c))
    for tangent, found in zip(tangents, carried, strict=True):
        _, truth = torch.autograd.functional.jvp(lambda x: layer_by_layer(net, x, t, c), x, tangent)
        assert torch.allclose(found, truth)


def test_decoding_undoes_encoding() -> None:
    flow, (w, values) = lively(), data()
    z, _ = flow.encode(w, values)
    assert (flow.decode(z, values) - w).abs().max() < 1e-4
    assert (z - w).abs().mean() > 0.5


def test_the_density_is_that_of_the_exact_jacobian() -> None:
    flow, (w, values) = lively(), data()
    found = flow.log_prob(w, values, unit_probes(ROWS, 4).double())
    for k in range(8):
        one, given = w[k : k + 1], values[k : k + 1]
        jacobian = torch.autograd.functional.jacobian(lambda x, given=given: flow.encode(x, given)[0][0], one)[:, 0]
        normal = torch.distributions.Normal(0.0, 1.0).log_prob(flow.encode(one, given)[0]).sum()
        assert float(found[k]) == pytest.approx(float(normal + jacobian.slogdet().logabsdet), abs=1e-4)


def test_random_probes_are_right_on_average() -> None:
    flow, (w, values) = lively(), data(1)
    n = 400
    many, given = w.expand(n, 4), values.expand(n, 3)
    probes = torch.randn(1, n, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = flow.log_prob(many, given, probes)
    truth = flow.log_prob(w, values, unit_probes(1, 4).double())
    assert found.std() > 0.01
    assert abs(float(found.mean() - truth)) < 4 * float(found.std()) / n**0.5


def test_the_density_integrates_to_one() -> None:
    flow = lively(dim=2, hidden=6)
    axis = torch.linspace(-10, 10, 61, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    values = torch.tensor([[0.0, 1.0, 0.3]]).double().expand(len(grid), 3)
    mass = flow.log_prob(grid, values, unit_probes(len(grid), 2).double()).exp().sum() * (axis[1] - axis[0]) ** 2
    assert float(mass) == pytest.approx(1, abs=2e-3)


def test_moving_norms_follow_and_are_undone() -> None:
    norm, rng = MovingNorm(3), torch.Generator().manual_seed(0)
    spread, centre = torch.tensor([0.1, 1.0, 5.0]), torch.tensor([4.0, 0.0, -2.0])
    batch = centre + spread * torch.randn(5000, 3, generator=rng)
    assert torch.allclose(norm(batch), batch / (1 + 1e-4) ** 0.5)
    for _ in range(120):
        norm(batch)
    norm.eval()
    y = norm(batch)
    assert torch.allclose(y.mean(dim=0), torch.zeros(3), atol=1e-3)
    # The variance is kept from nothing by 1e-4.
    assert torch.allclose(y.std(dim=0), spread / (spread.square() + 1e-4).sqrt(), atol=1e-3)
    assert torch.allclose(norm.inverse(y), batch, atol=1e-4)


def mixture(n: int) -> tuple[Tensor, Tensor]:
    """Side no: N((2h, -1), AA'); side yes: N((-2h, 2), BB'), h being the scaled height."""
    rng = torch.Generator().manual_seed(0)
    yes, h = (torch.rand(n, generator=rng) < 0.4).float(), torch.rand(n, generator=rng)
    e = torch.randn(n, 2, generator=rng)
    means = torch.stack([torch.where(yes > 0, -2 * h, 2 * h), 3 * yes - 1], dim=1)
    w = means + torch.where(yes[:, None] > 0, e @ YES.T, e @ NO.T)
    return w, torch.stack([1 - yes, yes, h], dim=1)


NO = torch.tensor([[0.5, 0.0], [0.3, 0.2]])
YES = torch.tensor([[1.0, 0.0], [-0.6, 0.5]])


@pytest.fixture(scope="module")
def trained() -> StyleFlow:
    w, values = mixture(20_000)
    flow = StyleFlow(SCHEMA, 2, values[:1000], 32).initialise(torch.Generator().manual_seed(0))
    fit(flow, w, values, Settings(batch=256, lr=0.02, warmup=20, steps=80))
    return flow


@pytest.mark.parametrize(
    ("row", "mean", "root"),
    [([0, 1, 0.5], (-1.0, 2.0), YES), ([1, 0, 0.1], (0.2, -1.0), NO), ([1, 0, 0.9], (1.8, -1.0), NO)],
)
def test_it_learns_a_conditional_mixture(
    trained: StyleFlow, row: list[float], mean: tuple[float], root: Tensor
) -> None:
    """A short training: means within 0.25, deviations within a quarter, and the correlation's sign and most of it."""
    drawn, truth = trained.sample(torch.tensor(row), 0, torch.arange(200)), root @ root.T
    assert torch.allclose(drawn.mean(dim=0), torch.tensor(mean), atol=0.25)
    found = torch.cov(drawn.T)
    assert torch.allclose(found.diagonal().sqrt(), truth.diagonal().sqrt(), rtol=0.25)
    correlation = truth[0, 1] / truth.diagonal().prod().sqrt()
    assert float(found[0, 1] / found.diagonal().prod().sqrt()) == pytest.approx(float(correlation), abs=0.25)


def test_draws_do_not_feel_their_neighbours(trained: StyleFlow) -> None:
    row = torch.tensor([math.nan, math.nan, 0.5])
    many = trained.sample(row, 5, torch.arange(12))
    assert torch.allclose(trained.sample(row, 5, torch.tensor([7]))[0], many[7], atol=1e-4)
    sides = (many[:, 1] > 0.5).float().mean()
    assert 0 < float(sides) < 1


def test_edits_change_what_is_asked(trained: StyleFlow) -> None:
    """From side no to yes at the same height; and back again to where they were, as the flow is exact."""
    w, values = mixture(150)
    no = values[:, 0] > 0
    w, source = w[no], values[no]
    target = torch.cat([1 - source[:, :2], source[:, 2:]], dim=1)
    edited = trained.edit(w, source, target)
    off = edited - torch.stack([-2 * source[:, 2], torch.full((len(source),), 2.0)], dim=1)
    assert off.mean(dim=0).abs().max() < 0.25
    assert torch.allclose(off.std(dim=0), (YES @ YES.T).diagonal().sqrt(), rtol=0.3)
    assert (trained.edit(edited, target, source) - w).abs().max() < 1e-2


def test_rows_of_styles_go_their_own_ways() -> None:
    flow, (w, values) = lively(), data()
    target = torch.cat([1 - values[:, :2], values[:, 2:]], dim=1)
    styles = torch.stack([w, w + 1, w], dim=1)
    edited = flow.edit(styles, values, target)
    for k, rows in enumerate((w, w + 1, w)):
        assert torch.allclose(edited[:, k], flow.edit(rows, values, target), atol=1e-4)


def test_nothing_asked_changes_nothing() -> None:
    flow, (w, values) = lively(), data()
    assert (flow.edit(w, values, values) - w).abs().max() < 1e-4


def shifting(dim: int, columns: Schema) -> StyleFlow:
    """A flow that moves every point alike, by what is asked for and by when: f = b sigmoid(G c + g) + H [t, c]."""
    rng = torch.Generator().manual_seed(0)
    flow = StyleFlow(columns, dim, torch.rand(50, columns.columns, generator=rng), 8).initialise(rng).double()
    with torch.no_grad():
        for weight in flow.velocity.weights:
            weight.zero_()
        flow.velocity.gates.weight[:, 0] = 0
        flow.root_time.fill_(1.1)
        for norm in (flow.first, flow.last):
            norm.scale.normal_(0, 0.3, generator=rng)
            norm.mean.normal_(generator=rng)
    return flow.requires_grad_(False).eval()


def shift(flow: StyleFlow, values: Tensor) -> Tensor:
    """How far :func:`shifting` moves: T (b sigmoid(G c + g) + H_c c) + T^2 / 2 H_t, of its last layer."""
    c, time, dim = flow.condition(values), float(flow.root_time) ** 2, len(flow.first.mean)
    net = flow.velocity
    gate = torch.sigmoid(c @ net.gates.weight[-dim:, 1:].T + net.gates.bias[-dim:])
    return (
        time * (net.biases[-dim:] * gate + c @ net.shifts.weight[-dim:, 1:].T)
        + time**2 / 2 * net.shifts.weight[-dim:, 0]
    )


def test_a_flow_in_closed_form() -> None:
    """z, its density, and edits: w' = w + (shift(source) - shift(target)) / slope of the first norm."""
    flow, (w, values) = shifting(4, SCHEMA), data()
    first, last = (norm.log_slope for norm in (flow.first, flow.last))
    z, slope = flow.encode(w, values, unit_probes(ROWS, 4).double())
    moved = (w - flow.first.mean) * first.exp() + shift(flow, values)
    assert torch.allclose(z, (moved - flow.last.mean) * last.exp(), atol=1e-5)
    assert torch.allclose(slope, (first + last).sum().expand(ROWS), atol=1e-6)
    target = torch.cat([1 - values[:, :2], values[:, 2:].flip(0)], dim=1)
    expected = w + (shift(flow, values) - shift(flow, target)) * (-first).exp()
    assert torch.allclose(flow.edit(w, values, target), expected, atol=1e-5)
    assert (expected - w).abs().mean() > 0.1


def test_marching_is_the_same_flow() -> None:
    """What training sees is what the adaptive solver finds, and the norms' slopes are those that were used."""
    flow, (w, values) = lively(), data()
    probes = unit_probes(ROWS, 4).double()
    truth = flow.log_prob(w, values, probes)
    assert torch.allclose(flow.train().log_prob(w, values, probes), truth, atol=1e-3)


def test_saved_flows_are_the_same(trained: StyleFlow, tmp_path: Path) -> None:
    trained.half().float()
    trained.save(tmp_path / "flow.safetensors", {"note": "kept"})
    again = StyleFlow.load(tmp_path / "flow.safetensors")
    row = torch.tensor([0.0, 1.0, math.nan])
    assert torch.equal(again.sample(row, 1, torch.arange(5)), trained.sample(row, 1, torch.arange(5)))
    assert again.schema.attributes == SCHEMA.attributes


@given(damage=st.binary(min_size=1, max_size=60), place=st.integers(0, 3000), cut=st.booleans())
def test_damaged_files_end_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, damage: bytes, place: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("flow") / "flow.safetensors"
    lively().float().save(path, {})
    content = path.read_bytes()
    path.write_bytes(content[:place] if cut else content[:place] + damage + content[place + len(damage) :])
    try:
        StyleFlow.load(path)
    except DataError as error:
        assert "flow.safetensors" in str(error)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    from lace.attributes.card import write_with_card

    write_with_card(tmp_path / "other.safetensors", {"weight": torch.zeros(2)}, {"schema": SCHEMA.to_json()})
    with pytest.raises(DataError, match="does not hold a StyleFlow"):
        StyleFlow.load(tmp_path / "other.safetensors")
