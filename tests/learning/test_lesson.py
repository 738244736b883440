"""Lessons on labels whose truth is known: what is learned, what is refused, and what the figures mean."""

from __future__ import annotations

import pytest
import torch

from lace.attributes.heads import MlpHeads
from lace.attributes.linear_start import start_from_ridge
from lace.attributes.schema import Continuous, Discrete, Schema
from lace.errors import UnreadableWord
from lace.learning.lesson import Labelled, auc, base_rate, learn_from, mean_auc, weighted_r2

YES, TONE, KIND = Discrete("bright"), Continuous("tone", -6, 6), Discrete("kind", ("a", "b", "c"))


def noise(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def soft(yes: torch.Tensor) -> torch.Tensor:
    return torch.stack([1 - yes, yes], dim=1)


def test_soft_answers_teach_their_own_probability() -> None:
    """A judge that says sigmoid(2 z0): the head's p(yes) is that function, not its rounding."""
    w = noise(3000, 8)
    lesson = learn_from(YES, Labelled(w, soft((2 * w[:, 0]).sigmoid()), torch.ones(len(w))))
    fresh = noise(2000, 8, 1)
    found, truth = lesson.heads(fresh)[:, 1].exp(), (2 * fresh[:, 0]).sigmoid()
    assert float((found - truth).abs().mean()) < 0.02
    assert lesson.figures["measured"]["ece"] < 0.03


def test_hard_answers_drawn_from_a_probability_teach_it_too() -> None:
    w = noise(6000, 8)
    yes = (torch.rand(len(w), generator=torch.Generator().manual_seed(2)) < (2 * w[:, 0]).sigmoid()).float()
    lesson = learn_from(YES, Labelled(w, soft(yes), torch.ones(len(w))))
    fresh = noise(2000, 8, 1)
    error = lesson.heads(fresh)[:, 1].exp() - (2 * fresh[:, 0]).sigmoid()
    assert float(error.abs().mean()) < 0.06
    assert abs(float(error.mean())) < 0.03


def test_weights_undo_a_choice() -> None:
    """Draws with z0 > 1 are taken always, others once in ten times; by 1 / chance, P(yes) is that of all draws."""
    w = noise(20_000, 8)
    chance = torch.where(w[:, 0] > 1, 1.0, 0.1)
    kept = torch.rand(len(w), generator=torch.Generator().manual_seed(3)) < chance
    data = Labelled(w[kept], soft((w[kept, 0] > 1.5).float()), 1 / chance[kept])
    truth = 0.0668072
    rate = base_rate(YES, data)["yes"]
    assert rate["interval"][0] < truth < rate["interval"][1]
    assert rate["interval"][1] - rate["interval"][0] < 0.02
    found = learn_from(YES, data).heads(noise(20_000, 8, 5))[:, 1].exp().mean()
    assert float(found) == pytest.approx(truth, abs=0.012)


def test_numbers_and_classes_are_learned_and_unknown_rows_left_out() -> None:
    w = noise(2000, 8)
    labels = ((w[:, 1] + 6) / 12)[:, None].clone()
    labels[::5] = float("nan")
    lesson = learn_from(TONE, Labelled(w, labels, torch.ones(len(w))))
    assert lesson.figures["test"]["value"] > 0.97
    assert sum(lesson.figures["rows"].values()) == 1600
    found = lesson.heads.schema.natural(lesson.heads(noise(500, 8, 7)), lesson.heads.schema["tone"])
    assert float((found - noise(500, 8, 7)[:, 1]).abs().mean()) < 0.2
    kinds = torch.nn.functional.one_hot(w[:, 2:5].argmax(dim=1), 3).float()
    assert learn_from(KIND, Labelled(w, kinds, torch.ones(len(w)))).figures["measured"]["accuracy"] > 0.93


@pytest.mark.parametrize("seed", range(2))
def test_noise_is_refused(seed: int) -> None:
    """Labels that say nothing of w: classes, rare classes and numbers."""
    w, rng = noise(1500, 64, seed), torch.Generator().manual_seed(100 + seed)
    random = torch.rand(len(w), generator=rng)
    for attribute, labels in (
        (YES, soft((random < 0.5).float())),
        (YES, soft((random < 0.08).float())),
        (TONE, random[:, None]),
    ):
        with pytest.raises(UnreadableWord, match="cannot be read from this model's latents"):
            learn_from(attribute, Labelled(w, labels, torch.ones(len(w))))


def test_too_little_is_refused_with_what_is_missing() -> None:
    w = noise(400, 8)
    few = torch.zeros(400)
    few[:7] = 1
    for attribute, labels, words in (
        (YES, soft(few), "7 of 400 labelled pictures are 'yes'.*1.8 %"),
        (YES, soft(few * 0), "0 of 400 labelled pictures are 'yes' .none."),
        (TONE, torch.full((400, 1), 0.5), "the same number"),
        (YES, torch.full((400, 2), float("nan")), "0 labels"),
        (TONE, 0.7 + w[:, :1], "% of the labels of 'tone' lie outside -6 to 6"),
    ):
        with pytest.raises(UnreadableWord, match=words):
            learn_from(attribute, Labelled(w, labels, torch.ones(400)))


def test_the_auc_counts_pairs() -> None:
    """Against all pairs, one by one, with ties and weights."""
    rng = torch.Generator().manual_seed(0)
    score = torch.randint(0, 6, (40,), generator=rng).float()
    weight, is_positive = torch.rand(40, generator=rng), torch.rand(40, generator=rng) < 0.4
    up, down = weight * is_positive, weight * ~is_positive
    wins = (score[:, None] > score[None]).float() + 0.5 * (score[:, None] == score[None]).float()
    truth = float((up[:, None] * down[None] * wins).sum() / (up.sum() * down.sum()))
    assert float(auc(score, up, down)) == pytest.approx(truth, abs=1e-5)
    table = torch.stack([-score, score, (~is_positive).float(), is_positive.float(), weight], dim=1)
    assert float(mean_auc(table[None])[0]) == pytest.approx(truth, abs=1e-5)


def test_r2_of_a_mean_is_nothing_and_of_the_truth_is_one() -> None:
    label, weight = torch.tensor([1.0, 2.0, 5.0]), torch.tensor([1.0, 1.0, 2.0])
    mean = torch.full((3,), 13 / 4)
    tables = torch.stack([torch.stack([reading, label, weight], dim=1) for reading in (label, mean)])
    assert weighted_r2(tables).tolist() == pytest.approx([1.0, 0.0], abs=1e-6)


def test_a_start_from_ridge_is_a_line() -> None:
    """Before any training the network reads a number as the ridge regression of closed form does."""
    x, schema = noise(300, 6), Schema([Continuous("tone", 0, 1)])
    y = (0.3 + x @ torch.tensor([0.1, -0.2, 0.0, 0.05, 0.0, 0.3]))[:, None]
    heads = MlpHeads(schema, 6, torch.ones(2, 1)).initialise(torch.Generator().manual_seed(0))
    for weight in heads.weights:
        weight.data[:, :, 2:] = 0
    start_from_ridge(heads, x, y, torch.ones(300))
    slopes = torch.linalg.solve(x.T @ x + 3.6 * torch.eye(6), x.T @ (y - y.mean()))
    assert torch.allclose(heads(x), y.mean() + x @ slopes, atol=1e-4)


def test_a_start_for_classes_is_a_linear_discriminant() -> None:
    """Two Gaussians a distance apart along one axis, one class in five: the log odds' slope and level are known."""
    n, gap = 40_000, 1.0
    rng = torch.Generator().manual_seed(0)
    yes = (torch.rand(n, generator=rng) < 0.2).float()
    x = torch.randn(n, 3, generator=rng)
    x[:, 0] += gap * (yes - 0.2)
    heads = MlpHeads(Schema([YES]), 3, torch.ones(1, 1))
    for weight in heads.weights:
        weight.data.zero_()
    start_from_ridge(heads, x, soft(yes), torch.ones(n))
    odds = heads.requires_grad_(False).logits(torch.tensor([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]]))[0]
    odds = odds[:, 1] - odds[:, 0]
    # Ridge knows the spread of both classes together, 1 + 0.16 gap^2: the slope is smaller by that.
    assert odds[1] - odds[0] == pytest.approx(gap / 1.16, abs=0.08)
    assert odds[2] - odds[0] == pytest.approx(0, abs=0.08)
    assert odds[0] == pytest.approx(-1.386, abs=0.05)
