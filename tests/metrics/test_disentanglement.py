"""DES on sequences whose ACCs are set by hand, face by face."""

from __future__ import annotations

import pytest
import torch

from lace.attributes.schema import Discrete, Schema
from lace.errors import DataError
from lace.metrics.disentanglement import disentanglement

SCHEMA = Schema([Discrete("a"), Discrete("hat"), Discrete("b"), Discrete("c")])
N = 200
ASKED = torch.tensor([0.0, 1, torch.nan, torch.nan, 0, 1, 0, 1])


def judged(**acc: float) -> torch.Tensor:
    """N faces of which so many shares are yes; the hat, which nobody asked for, is anything."""
    yes = torch.rand(N, 4, generator=torch.Generator().manual_seed(0))
    for k, name in ((0, "a"), (2, "b"), (3, "c")):
        yes[:, k] = (torch.arange(N) < round(acc[name] * N)).float()
    return torch.stack([1 - yes, yes], dim=2).flatten(1)


STAGES = [judged(a=0.2, b=0.5, c=0.1), judged(a=0.8, b=0.4, c=0.1), judged(a=0.7, b=0.9, c=0.19), judged(a=1, b=1, c=1)]


def test_the_definition_by_hand() -> None:
    found = disentanglement(STAGES, ASKED, SCHEMA, ["a", "b", "c"])
    one = 0.6 / 0.8 - 0.1 / 0.5
    two = 0.5 / 0.6 - max(0.1 / 0.2, 0.09 / 0.9)
    three = 0.81 / 0.81 - max(0.3 / 0.3, 0.1 / 0.1)
    assert [found.edits[name].des.value for name in "abc"] == pytest.approx([one, two, three], abs=1e-6)
    assert found.mean.des.value == pytest.approx((one + two + three) / 3, abs=1e-6)
    plain = [0.6 / 0.8 - 0.1, 0.5 / 0.6 - 0.1, 1 - 0.3]
    assert [found.edits[name].plain.value for name in "abc"] == pytest.approx(plain, abs=1e-6)
    assert torch.allclose(found.acc[1], torch.tensor([0.8, 0.4, 0.1]).double())


def test_perfect_edits_have_one_and_none_have_nothing() -> None:
    start, perfect = judged(a=0, b=0, c=0), [judged(a=1, b=0, c=0), judged(a=1, b=1, c=0), judged(a=1, b=1, c=1)]
    assert disentanglement([start, *perfect], ASKED, SCHEMA, ["a", "b", "c"]).mean.des == (1, 1, 1)
    assert disentanglement([start] * 4, ASKED, SCHEMA, ["a", "b", "c"]).mean.des == (0, 0, 0)


def test_a_face_that_was_not_read_at_one_stage_counts_at_none() -> None:
    """Of the faces that had b before, half are unreadable afterwards: the others show that nothing changed."""
    before, after = judged(a=0, b=0.5, c=0), judged(a=1, b=0.5, c=0)
    after[: N // 4, 4:6] = torch.nan
    assert disentanglement([before, after, after], ASKED, SCHEMA, ["a", "b"]).edits["a"].des.value == 1


def test_nothing_to_gain_is_held_at_half_a_face() -> None:
    """All faces had it before: one that loses it costs 2, and one that keeps it gains nothing."""
    stages = [judged(a=1, b=0, c=0), judged(a=1, b=1, c=0), judged(a=1 - 1 / N, b=1, c=1)]
    edits = disentanglement(stages, ASKED, SCHEMA, ["b", "c"]).edits
    assert edits["b"].des.value == 1
    stages = [judged(a=1, b=0, c=0), judged(a=1 - 1 / N, b=1, c=0), judged(a=1 - 1 / N, b=1, c=1)]
    edits = disentanglement([stages[0], stages[0], stages[1]], ASKED, SCHEMA, ["a", "b"]).edits
    assert edits["a"].des.value == 0
    assert edits["b"].des.value == pytest.approx(1 - 2, abs=1e-6)


def test_the_order_of_the_sequence_counts_not_that_of_the_schema() -> None:
    stages = [judged(a=0, b=0, c=0), judged(a=0, b=0, c=1), judged(a=1, b=0, c=1)]
    assert disentanglement(stages, ASKED, SCHEMA, ["c", "a"]).mean.des.value == 1
    assert disentanglement(stages, ASKED, SCHEMA, ["a", "c"]).mean.des.value == -1


def test_what_does_not_fit_is_refused() -> None:
    for sequence in (["a", "b"], ["a"], ["a", "b", "a"]):
        with pytest.raises(DataError, match="each edited once"):
            disentanglement(STAGES, ASKED, SCHEMA, sequence)
