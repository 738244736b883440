"""Models: a toy whose truth is known, and the real one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import lace
from lace.attributes.heads import FunctionHeads, JoinedHeads
from lace.conditions.formula import leaves
from lace.errors import AddressError, ConditionError, UnknownNameError, UnsatisfiableCondition, ValueRangeError
from lace.planning import Wish, plan
from lace.target import SLACK, Draft, SentenceTarget, Sight
from tests.conftest import within

GRID = torch.linspace(-9, 9, 100_001, dtype=torch.float64)
DENSITY = (-GRID.square() / 2).exp() / math.sqrt(2 * math.pi) * (GRID[1] - GRID[0])
BRIGHT = float((DENSITY * (2 * GRID).sigmoid()).sum())


def tone_above(x: float) -> float:
    """P(tone > x): a standard normal plus the head's own error of 0.5."""
    return 0.5 * math.erfc(x / math.sqrt(1.25) / math.sqrt(2))


@pytest.mark.parametrize(
    ("sentence", "truth"),
    [
        ("bright", BRIGHT),
        ("tone>1", tone_above(1)),
        ("tone in -1..1", 1 - 2 * tone_above(1)),
        ("bright & tone>1", BRIGHT * tone_above(1)),
        ("bright | tone>1", BRIGHT + tone_above(1) - BRIGHT * tone_above(1)),
        ("~bright & tone<-1.5", (1 - BRIGHT) * tone_above(1.5)),
        ("kind=a | kind=b", 2 / 3),
    ],
)
def test_probabilities_are_the_truth(toy: lace.Model, sentence: str, truth: float) -> None:
    estimate = toy.probability(sentence)
    assert within(estimate.probability, truth, math.sqrt(truth * (1 - truth) / 2**14))
    assert estimate.low < truth < estimate.high


def test_samples_obey_in_the_right_proportion(toy: lace.Model) -> None:
    """z0 given bright, z1 given tone in 0..1: moments by quadrature, within 4 standard errors."""
    n = 3000
    out = toy.latents("bright & tone in 0..1", n=n, seed=4)
    first = DENSITY * (2 * GRID).sigmoid()
    second = DENSITY * (torch.special.ndtr((1 - GRID) / 0.5) - torch.special.ndtr(-GRID / 0.5))
    for density, column in ((first, 0), (second, 1)):
        density = density / density.sum()
        mean = float((density * GRID).sum())
        sd = float((density * (GRID - mean) ** 2).sum().sqrt())
        assert within(float(out.z[:, column].mean()), mean, sd / math.sqrt(n))
    assert out.log_prob is not None
    assert torch.allclose(out.log_prob, toy.target("bright & tone in 0..1").log_prob(out.z), atol=1e-5)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_first_n_are_the_same(toy: lace.Model, seed: int) -> None:
    """Seed 0 begins in the bank and goes on past it."""
    few, many = (toy.latents("tone>2.5", n=n, seed=seed) for n in (5, 150))
    assert few.addresses == many.addresses[:5]
    assert max(address.index for address in many.addresses) > 2**13


def test_bank_and_fresh_readings_agree(toy: lace.Model) -> None:
    """The same addresses are kept whether the bank answers or the heads do."""
    target = toy.target("bright & kind=c")
    index = torch.arange(2**14)
    with torch.inference_mode():
        fresh = target.log_prob(target.prior(0, index))
    assert torch.allclose(target.log_prob_at(0, index), fresh, atol=1e-5)


def test_an_address_draws_its_picture_again(toy: lace.Model) -> None:
    out = toy.sample("bright", n=6, seed=2)
    again = toy.at([str(address) for address in out.addresses][::-1])
    assert out.images is not None
    assert np.array_equal(np.stack(list(toy.pictures(again.w)))[::-1], out.images)
    assert out.images.dtype == np.uint8
    assert out.images.shape == (6, 8, 8, 3)


def test_pixels_are_rounded_as_pictures_are(toy: lace.Model) -> None:
    w = torch.zeros(1, 8)
    w[0, :3] = torch.tensor([-20.0, 0.0, 20.0])
    assert next(toy.pictures(w))[0, 0].tolist() == [0, 128, 255]


def test_formulas_and_sentences_are_one(toy: lace.Model) -> None:
    formula = toy["bright"] & ~toy["kind=a"] | 2 * toy["tone>1"]
    assert formula == toy.formula("bright & ~kind=a | 2*tone>1")
    assert toy.latents(formula, n=3).addresses == toy.latents(str(formula), n=3).addresses


def test_a_formula_of_another_model_is_refused(toy: lace.Model) -> None:
    other = lace.Model(lace.FunctionGenerator(lambda z: z, 2), [(lace.Discrete("soft"), lambda w: w)], bank_size=64)
    with pytest.raises(UnknownNameError, match="soft"):
        toy.latents(other["soft"])


def test_what_cannot_be_reached_says_how_rare_each_term_is(toy: lace.Model) -> None:
    with pytest.raises(UnsatisfiableCondition) as refusal:
        toy.latents("tone>5.5 & bright & tone<-2", n=4)
    assert "out of reach" in str(refusal.value)
    assert refusal.value.estimates["bright"] == pytest.approx(BRIGHT, abs=0.02)
    with pytest.raises(UnsatisfiableCondition, match=r"Only \d+ of 50 were found among 2,000 draws"):
        toy.latents("tone>2.5", n=50, max_draws=2000)


@pytest.mark.parametrize("strictness", [0.0, 0.2, 0.4, 0.5, 0.8, 1.0])
def test_plans_foretell_the_acceptance(toy: lace.Model, strictness: float) -> None:
    plan = toy.plan("bright & tone>0.5", strictness=strictness)
    info = toy.latents("bright & tone>0.5", n=300, seed=9, strictness=strictness).info
    assert info is not None
    share = 1 / plan.draws_each
    error = math.sqrt(share * (1 - share) * (1 / info.evaluations + 1 / 2**14))
    assert within(info.acceptance, share, error)


def test_strictness_raises_the_heads_probability(toy: lace.Model) -> None:
    mean = [
        float(toy.latents("bright & tone in 0..1", 400, strictness=s).log_prob.exp().mean()) for s in (0, 0.4, 0.7, 1)
    ]  # type: ignore[union-attr]
    assert mean == sorted(mean)
    assert mean[-1] > mean[0] + 0.1


def test_samplers_by_name_and_as_objects(toy: lace.Model) -> None:
    named = toy.latents("bright", n=4, sampler="rejection")
    assert named.addresses == toy.latents("bright", n=4, sampler=lace.Rejection()).addresses
    assert toy.plan("bright", sampler="level-set").sampler.name == "level-set"
    with pytest.raises(UnknownNameError, match="rejection"):
        toy.plan("bright", sampler="hmc")
    with pytest.raises(ConditionError, match=r"0\.4"):
        toy.plan("bright", sampler="rejection", strictness=0.6)


def test_auto_leads_particles_only_where_they_cost_less(toy: lace.Model) -> None:
    """A common sentence is rejected for however many, a rare one only for few."""
    assert toy.plan("bright", n=1_000_000).sampler.name == "rejection"
    assert toy.plan("tone>3.5", n=1).sampler.name == "rejection"
    assert toy.plan("tone>3.5", n=500).sampler.name == "smc"


def test_what_no_draw_of_the_bank_obeys_can_be_asked_for_strictly(toy: lace.Model) -> None:
    """tone > 5 is true of no draw of 16,384: particles find it, and the stricter the clearer, far below 1e-9."""
    assert toy.plan("tone>5", strictness=1).sampler.settings["gamma"] == pytest.approx(400)
    assert toy.plan("tone>4", strictness=1).sampler.name == "level-set"
    drawn = [toy.latents("tone>5", 64, strictness=s) for s in (0.4, 1)]
    mean = [float(drawing.w[:, 1].mean()) for drawing in drawn]
    assert mean == sorted(mean)
    assert bool((drawn[-1].w[:, 1] > 5).all())


def test_bad_requests(toy: lace.Model) -> None:
    with pytest.raises(ValueRangeError, match="at least 1"):
        toy.latents("bright", n=0)
    with pytest.raises(ValueRangeError, match="1,048,576"):
        toy.latents("bright", n=2**20 + 1)
    with pytest.raises(ValueRangeError, match="another model"):
        toy.given(torch.zeros(1, 5))
    with pytest.raises(AddressError):
        toy.at(["nowhere"])
    with pytest.raises(ValueRangeError):
        toy.at([])
    with pytest.raises(ValueRangeError, match="psi"):
        lace.load("ffhq", psi=1.5)
    with pytest.raises(UnknownNameError, match="ffhq"):
        lace.load("fhq")
    with pytest.raises(ValueRangeError, match="device"):
        lace.load("ffhq", device="abacus")


def test_values_are_for_people(toy: lace.Model) -> None:
    values = toy.at(["0:1"]).values(0)
    assert set(values) == {"bright", "tone", "kind"}
    assert sum(values["kind"].values()) == pytest.approx(1, abs=1e-3)
    assert values["tone"] == pytest.approx(float(toy.generator.prior(0, torch.tensor([1]))[0, 1]), abs=1e-3)


def test_faces_obey_and_come_back(ffhq: lace.Model) -> None:
    """Two faces of a sentence, drawn again by address alone: the same pictures to the last bit, the same readings."""
    out = ffhq.sample("glasses & smile & ~male & age in 40..60", n=2, seed=0)
    assert out.images is not None
    assert out.images.shape == (2, 1024, 1024, 3)
    alone = ffhq.at([out.addresses[1]])
    assert np.array_equal(next(ffhq.pictures(alone.w)), out.images[1])
    assert alone.values(0) == out.values(1)
    for k in range(2):
        assert 25 < out.values(k)["age"] < 75
    assert ffhq.latents("glasses & smile & ~male & age in 40..60", n=40, seed=0).addresses[:2] == out.addresses


def test_faces_of_the_bank_agree_with_their_card(ffhq: lace.Model) -> None:
    """Base rates that anybody can check by eye on a sheet of unconditional faces."""
    rates = {word: ffhq.probability(word).probability for word in ("smile", "glasses", "male", "bald", "age>30")}
    assert 0.5 < rates["smile"] < 0.85
    assert 0.05 < rates["glasses"] < 0.25
    assert 0.35 < rates["male"] < 0.6
    assert rates["bald"] < 0.05
    assert 0.3 < rates["age>30"] < 0.7


def test_what_was_asked_before_is_remembered(toy: lace.Model) -> None:
    """A sentence and the same formula by operators are one; another reading, or another number, is another."""
    target = toy.target("bright & tone>1")
    assert toy.target(toy["bright"] & toy["tone>1"]) is target
    assert toy.target("bright & tone>1", "energy") is not target
    assert toy.plan("bright", n=3) is toy.plan(toy["bright"], n=3)
    assert toy.plan("tone>3.5", n=1).sampler.name != toy.plan("tone>3.5", n=500).sampler.name


def test_a_new_word_forgets_what_was_remembered() -> None:
    """The same sentence stands for other columns then."""
    words = [(lace.Continuous(name, -6, 6, sigma=0.5), lambda w, k=k: w[:, k]) for k, name in enumerate("abc")]
    generator = lace.FunctionGenerator(lambda z: z[:, :3, None, None].expand(-1, 3, 8, 8), latent_dim=4)
    model = lace.Model(generator, words[1:], bank_size=2**10)
    before, z = model.target("b>0"), torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    planned = model.plan("b>0")
    model._know(JoinedHeads([FunctionHeads(words[:1]), model.heads]))
    assert model.target("b>0") is not before
    assert torch.allclose(model.target("b>0").value(z), before.value(z), atol=1e-6)
    assert model.plan("b>0") is not planned


def test_a_sampler_of_any_kind_may_be_given(toy: lace.Model) -> None:
    """A dataclass cannot be a key of a dictionary."""

    @dataclass
    class Sure(lace.Filter):
        least: float

        def __post_init__(self) -> None:
            super().__init__()
            self.name = "sure"

        def step(self, target: lace.Target, seed: int, index: torch.Tensor) -> torch.Tensor:
            return target.log_prob_at(seed, index).exp() > self.least

    out = toy.latents("bright", n=5, sampler=Sure(0.9))
    assert out.log_prob is not None
    assert bool((out.log_prob.exp() > 0.9).all())


def test_a_gpu_goes_on_with_single_draws_for_longer(toy: lace.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between 2^17 and 2^20 draws a CPU leads particles; beyond, both do."""
    wish, rare, rarest = Wish(), toy.formula("tone>3.5"), toy.formula("tone>4.1")
    readings = toy.bank.readings
    share = [float(toy.probability(formula).probability) for formula in (rare, rarest)]
    assert 2**17 < 500 / share[0] < 2**20 < 500 / share[1]
    for device, expected in (("cpu", ["smc", "smc"]), ("cuda", ["rejection", "smc"]), ("mps", ["smc", "smc"])):
        there = readings.as_subclass(type("There", (torch.Tensor,), {"device": torch.device(device)}))
        found = [plan(formula, there, toy.schema, wish, 500).sampler.name for formula in (rare, rarest)]
        assert found == expected


@torch.inference_mode()
@pytest.mark.parametrize("sentence", ["glasses & smile & ~male", "age in 50..60 | 2*hat", "haircolor=gray & yaw>5"])
def test_drafts_stay_within_the_slack(ffhq: lace.Model, sentence: str) -> None:
    """In half precision, wherever a draw has a chance; margins too."""
    target, words = ffhq.target(sentence), {leaf.attribute.name for leaf in leaves(ffhq[sentence])}
    assert isinstance(target, SentenceTarget)
    half = Sight(ffhq.generator.swift(torch.float16), ffhq.heads.only(words).half())
    draft, index = Draft(target, half), torch.arange(600)
    values, guessed = target.log_prob_at(5, index), draft.log_prob_at(5, index) - SLACK
    likely = values > -8
    assert int(likely.sum()) > 20
    assert float((guessed - values)[likely].abs().max()) < SLACK / 2
    assert float((draft.margin_at(5, index) - SLACK - target.margin_at(5, index)).abs().max()) < SLACK / 2


@torch.inference_mode()
def test_the_way_for_gpus_reads_the_same(ffhq: lace.Model) -> None:
    """In full precision: a folded mapping, and heads for the words alone."""
    z = ffhq.generator.prior(5, torch.arange(200))
    sight = Sight(ffhq.generator.swift(torch.float32), ffhq.heads.only({"glasses", "age"}))
    found, schema = sight(z)
    for name in ("glasses", "age"):
        assert torch.allclose(found[:, schema.slice(name)], ffhq.read(z)[:, ffhq.schema.slice(name)], atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_gpu_finds_the_same_faces(ffhq: lace.Model) -> None:
    there = lace.load("ffhq", device="cuda")
    for seed in (0, 1):
        found = [model.latents("glasses & smile & ~male", n=30, seed=seed).addresses for model in (ffhq, there)]
        assert found[0] == found[1]
