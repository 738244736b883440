"""Editing by a flow whose every step is known."""

from __future__ import annotations

import pytest
import torch

import lace
from lace.attributes.schema import Continuous, Discrete, Schema
from lace.baselines.styleflow import StyleFlow
from lace.baselines.styleflow_editing import StyleFlowEditing

from .test_styleflow import shift, shifting

WORDS = Schema([Discrete("round"), Continuous("tall", -6, 6)])
START = torch.tensor([[0.5, -1.0, 0.3, 0.8, -0.4, 1.2], [-2.0, 0.2, -0.3, 0.1, 0.4, -1.0]])


@pytest.fixture(scope="module")
def flow() -> StyleFlow:
    return shifting(6, WORDS).float()


def rows(model: lace.Model, tall: float | None = None, is_round: float | None = None) -> torch.Tensor:
    """What the starts show, by hand, but for what is said: round is sigmoid(2 z2), tall is z0."""
    yes = torch.sigmoid(2 * START[:, 2:3]) if is_round is None else torch.full((2, 1), is_round)
    height = (START[:, :1] + 6) / 12 if tall is None else torch.full((2, 1), (tall + 6) / 12)
    return torch.cat([1 - yes, yes, height], dim=1)


def expected(flow: StyleFlow, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    return START + (shift(flow, before) - shift(flow, after)) * (-flow.first.log_slope).exp()


def test_edits_add_up_to_the_last_values(plain: lace.Model, flow: StyleFlow) -> None:
    """What one edit decodes the next encodes, so that a chain ends where a single edit of all its words would."""
    album = plain.edit(START, ["tall=2", "round"], method=StyleFlowEditing(flow, gains={}))
    source = rows(plain)
    assert torch.allclose(album.drawings[1].w, expected(flow, source, rows(plain, tall=2)), atol=1e-4)
    assert torch.allclose(album.drawings[2].w, expected(flow, source, rows(plain, tall=2, is_round=1)), atol=1e-4)
    again = album.then("tall=-3")
    assert torch.allclose(again.drawings[3].w, expected(flow, source, rows(plain, tall=-3, is_round=1)), atol=1e-4)


def test_gains_ask_for_more_than_was_said(plain: lace.Model, flow: StyleFlow) -> None:
    album = plain.edit(START, "tall=2", method=StyleFlowEditing(flow, gains={"tall": 1.5}))
    source, target = rows(plain), rows(plain, tall=2)
    assert torch.allclose(album.drawings[1].w, expected(flow, source, source + 1.5 * (target - source)), atol=1e-4)


def test_another_method_goes_on_from_there(plain: lace.Model, flow: StyleFlow) -> None:
    """What the flow has done is an offset to z, which stays."""
    album = plain.edit(START, "round", method=StyleFlowEditing(flow, gains={})).then("tall=1", method=plain_neighbour())
    first, second = album.drawings[1:]
    assert torch.allclose(second.w - first.w, second.z - first.z, atol=1e-4)
    assert torch.allclose(second.w[:, 0], torch.ones(2), atol=0.3)


def plain_neighbour() -> lace.Neighbourhood:
    return lace.Neighbourhood(0.0)


def test_a_subset_changes_its_styles_alone(ffhq: lace.Model) -> None:
    schema = Schema([Discrete("glasses"), Continuous("age", 0, 80, "years"), Continuous("psi", 0.5, 1)])
    method = StyleFlowEditing(shifting(512, schema).float(), gains={})
    album = ffhq.edit("0:100", ["glasses", "age=60"], method=method, subset=True)
    start, worn, aged = (drawing.w[0] for drawing in album.drawings)
    layers = torch.tensor(ffhq.generator.style_layers)
    assert torch.equal(worn[layers > 5], start.expand(23, -1)[layers > 5])
    assert (worn[layers <= 5] - start).abs().mean() > 1e-3
    untouched = (layers < 4) | (layers > 7)
    assert torch.equal(aged[untouched], worn[untouched])
    # Every style moves alike in this flow, from wherever it was.
    moved = (aged - worn)[~untouched]
    assert torch.allclose(moved, moved[:1].expand_as(moved), atol=1e-3)
    assert moved.abs().mean() > 1e-3


def test_what_is_no_single_value_is_refused(plain: lace.Model, flow: StyleFlow) -> None:
    with pytest.raises(lace.ConditionError, match="one value for each attribute"):
        plain.edit(START, "tall in 1..2", method=StyleFlowEditing(flow))
