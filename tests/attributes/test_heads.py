"""Heads against the networks they stand for, one matrix product at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from lace.attributes.card import read_card
from lace.attributes.heads import FunctionHeads, Heads, JoinedHeads, MlpHeads, mix
from lace.attributes.schema import Continuous, Discrete, Schema
from lace.errors import DataError


def heads_of(schema: Schema, speakers: torch.Tensor, inputs: int = 6) -> MlpHeads:
    heads = MlpHeads(schema, inputs, speakers, "test").initialise(torch.Generator().manual_seed(1))
    rng = torch.Generator().manual_seed(2)
    for weight, bias in zip(heads.weights, heads.biases, strict=True):
        bias.data.normal_(generator=rng)
        weight.data.mul_(1.5)
    heads.temperature.copy_(torch.linspace(0.5, 2.0, len(schema)))
    return heads.requires_grad_(False)


def one_network(heads: MlpHeads, k: int, w: torch.Tensor) -> torch.Tensor:
    """The k-th network alone, as a plain stack of linear layers."""
    x = w
    for depth, (weight, bias) in enumerate(zip(heads.weights, heads.biases, strict=True)):
        x = F.linear(x, weight[k].T, bias[k, 0])
        x = F.leaky_relu(x, 0.2) if depth < 3 else x
    return x


def expected(heads: MlpHeads, w: torch.Tensor) -> torch.Tensor:
    """Probabilities averaged over the networks that speak for an attribute; numbers likewise."""
    columns = []
    for a, attribute in enumerate(heads.schema):
        own = [
            one_network(heads, k, w)[:, heads.schema.slice(attribute.name)]
            for k in range(len(heads.speakers))
            if heads.speakers[k, a]
        ]
        if isinstance(attribute, Discrete):
            own = [(logits / heads.temperature[a]).softmax(dim=1) for logits in own]
        mean = torch.stack(own).mean(dim=0)
        columns.append(mean.log() if isinstance(attribute, Discrete) else mean)
    return torch.cat(columns, dim=1)


ARRANGEMENTS = {"trunk": torch.ones(1, 5), "ensemble": torch.ones(3, 5), "separate": torch.eye(5)}


@pytest.mark.parametrize("kind", ARRANGEMENTS)
def test_equals_the_networks_one_by_one(schema: Schema, kind: str) -> None:
    heads = heads_of(schema, ARRANGEMENTS[kind])
    w = torch.randn(20, 6, generator=torch.Generator().manual_seed(3))
    assert torch.allclose(heads(w), expected(heads, w), atol=1e-5)


@pytest.mark.parametrize("kind", ARRANGEMENTS)
def test_each_network_alone_is_the_network(schema: Schema, kind: str) -> None:
    heads = heads_of(schema, ARRANGEMENTS[kind])
    w = torch.randn(20, 6, generator=torch.Generator().manual_seed(3))
    for k, logits in enumerate(heads.logits(w)):
        assert torch.allclose(heads._logits_of(k, w), one_network(heads, k, w), atol=1e-5)
        assert torch.allclose(logits, one_network(heads, k, w), atol=1e-5)


def function_heads(schema: Schema) -> Heads:
    """Each word reads a part of w of its own."""
    return FunctionHeads(
        (attribute, lambda w, k=k, c=attribute.columns: w[:, k] if c == 1 else w[:, k : k + c] * w[:, :1])
        for k, attribute in enumerate(schema)
    )


def joined_heads(schema: Schema) -> Heads:
    """An ensemble, functions, and separate networks."""
    first, second, third = (Schema(schema.attributes[a:b]) for a, b in ((0, 2), (2, 3), (3, 5)))
    return JoinedHeads([heads_of(first, torch.ones(3, 2)), function_heads(second), heads_of(third, torch.eye(2))])


MANY_KINDS = {
    **{kind: lambda schema, table=table: heads_of(schema, table) for kind, table in ARRANGEMENTS.items()},
    "overlapping": lambda schema: heads_of(schema, torch.tensor([[1.0, 1, 0, 0, 1], [0, 1, 1, 1, 1]])),
    "functions": function_heads,
    "joined": joined_heads,
}


@pytest.mark.parametrize("kind", MANY_KINDS)
@given(names=st.sets(st.sampled_from(["smile", "glasses", "hair", "age", "yaw"]), min_size=1))
def test_fewer_words_are_read_as_among_all(schema: Schema, kind: str, names: set[str]) -> None:
    """The columns of each word asked for; those in the same order as before."""
    heads = MANY_KINDS[kind](schema)
    w = torch.randn(20, 6, generator=torch.Generator().manual_seed(3))
    some, all_words = heads.only(names), heads(w)
    found = some(w)
    kept = [attribute.name for attribute in some.schema]
    assert names <= set(kept)
    assert kept == [attribute.name for attribute in schema if attribute.name in kept]
    assert kind in ("functions", "joined") or len(kept) == len(names)
    assert found.shape == (20, some.schema.columns)
    for name in kept:
        assert torch.allclose(found[:, some.schema.slice(name)], all_words[:, schema.slice(name)], atol=1e-5)


def test_fewer_words_need_fewer_networks(schema: Schema) -> None:
    """Of separate networks only those that speak; of others' last layers only the columns."""
    alone = heads_of(schema, torch.eye(5)).only({"age", "hair"})
    assert isinstance(alone, MlpHeads)
    assert alone.weights[0].shape[0] == 2
    trunk = heads_of(schema, torch.ones(1, 5)).only({"age", "hair"})
    assert isinstance(trunk, MlpHeads)
    assert trunk.weights[-1].shape[2] == 4


def test_class_readings_are_log_probabilities(schema: Schema) -> None:
    heads = heads_of(schema, torch.ones(4, 5))
    readings = heads(torch.randn(50, 6))
    for attribute in schema:
        if isinstance(attribute, Discrete):
            total = readings[:, schema.slice(attribute.name)].exp().sum(dim=1)
            assert torch.allclose(total, torch.ones(50), atol=1e-5)


def test_mixing_keeps_what_one_network_is_sure_of() -> None:
    """log mean p of (1, e^-60) and (e^-60, 1) is log 1/2 each, though single logs would underflow in p."""
    mixed = mix(torch.tensor([[[0.0, -60.0]], [[-60.0, 0.0]]]))
    assert torch.allclose(mixed.exp(), torch.tensor([[0.5, 0.5]]))


@pytest.mark.parametrize("nets", [1, 2, 5])
def test_mixing_is_the_mean_of_who_speaks(nets: int) -> None:
    """With and without a word on who speaks; the silent ones' outputs do not matter."""
    logits = 5 * torch.randn(nets + 1, 30, 4, 3, generator=torch.Generator().manual_seed(nets), dtype=torch.float64)
    truth = logits[:nets].softmax(dim=-1).mean(dim=0).log()
    speaks = torch.ones(nets + 1, 1, 4, 1, dtype=torch.float64)
    speaks[nets] = 0
    assert torch.allclose(mix(logits[:nets]), truth, atol=1e-12)
    assert torch.allclose(mix(logits, speaks), truth, atol=1e-12)


def test_saved_heads_read_the_same(schema: Schema, tmp_path: Path) -> None:
    heads = heads_of(schema, torch.ones(2, 5)).half().float()
    path = tmp_path / "heads.safetensors"
    heads.save(path, {"note": "kept"})
    again = MlpHeads.load(path)
    w = torch.randn(9, 6)
    assert torch.equal(again(w), heads(w))
    assert again.schema.attributes == schema.attributes
    assert again.identity == "test"
    assert read_card(path)["note"] == "kept"
    assert [entry.name for entry in tmp_path.iterdir()] == ["heads.safetensors"]


@given(damage=st.binary(min_size=1, max_size=60), place=st.integers(0, 400), cut=st.booleans())
def test_damaged_files_end_in_a_sentence(
    schema: Schema, tmp_path_factory: pytest.TempPathFactory, damage: bytes, place: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("heads") / "heads.safetensors"
    heads_of(schema, torch.ones(1, 5)).save(path, {})
    content = path.read_bytes()
    path.write_bytes(content[:place] if cut else content[:place] + damage + content[place + len(damage) :])
    try:
        read_card(path)
    except DataError as error:
        assert "heads.safetensors" in str(error)


def test_function_heads_scale_numbers_and_normalise_classes() -> None:
    kind, size = Discrete("kind", ("a", "b")), Continuous("size", 10, 20)
    heads = FunctionHeads([(kind, lambda w: w[:, :2]), (size, lambda w: w[:, 2])])
    readings = heads(torch.tensor([[1.0, 3.0, 15.0]]))
    assert readings[0, :2].exp().tolist() == pytest.approx([1 / (1 + 2.718281828**2), 1 / (1 + 2.718281828**-2)])
    assert float(readings[0, 2]) == pytest.approx(0.5)
