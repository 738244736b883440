"""Which judge speaks for which word: worked out by hand, from answers that are known."""

from __future__ import annotations

import pytest
import torch

from lace.attributes.annotators.landmarks import COLUMNS
from lace.attributes.annotators.voices import Answers, classes, number, smile_shift, voices
from lace.attributes.schema import Continuous, Discrete

NAMES = ["Smiling", "Male", "Eyeglasses"]


def answers(n: int = 400, **given: torch.Tensor) -> Answers:
    rng = torch.Generator().manual_seed(0)
    tensors = {name: torch.rand(n, 3, generator=rng) for name in ("labeller", "independent")}
    tensors |= {name: torch.rand(n, generator=rng) for name in ("faceres_male", "age_v1", "faceres_age")}
    tensors["landmarks"] = torch.rand(n, len(COLUMNS), generator=rng)
    return Answers(tensors | given, NAMES, list(COLUMNS))


def odds(p: torch.Tensor) -> torch.Tensor:
    p = p.clamp(1e-3, 1 - 1e-3)
    return p / (1 - p)


def test_smile_and_gender_have_the_geometric_mean_of_two_odds() -> None:
    said = answers()
    said.shift = 0.4
    smile = odds(classes(said, Discrete("smile"))[:, 1])
    gender = odds(classes(said, Discrete("gender", ("female", "male")))[:, 1])
    strength = odds(said.landmark("smile")) / torch.tensor(0.4).exp()
    assert torch.allclose(smile, (odds(said.attribute("Smiling")) * strength).sqrt(), rtol=1e-3)
    both = odds(said.attribute("Male")) * odds(said.tensors["faceres_male"])
    assert torch.allclose(gender, both.sqrt(), rtol=1e-3)


def test_a_smile_on_a_face_that_the_landmarker_missed() -> None:
    """It has no opinion then: even odds, shifted as always."""
    said = answers(1, labeller=torch.tensor([[0.8, 0.5, 0.5]]), landmarks=torch.full((1, len(COLUMNS)), torch.nan))
    said.shift = 0.0
    assert odds(classes(said, Discrete("smile"))[0, 1]) == pytest.approx(2, rel=1e-4)
    assert number(said, "yaw").isnan().all()


def test_the_shift_makes_both_say_yes_as_often() -> None:
    said = answers()
    shifted = odds(said.landmark("smile")) / torch.tensor(smile_shift(said)).exp()
    assert int((shifted > 1).sum()) == pytest.approx(int((said.attribute("Smiling") > 0.5).sum()), abs=1)


def test_numbers() -> None:
    said = answers()
    assert torch.allclose(number(said, "age"), (said.tensors["age_v1"] + said.tensors["faceres_age"]) / 2)
    assert torch.equal(number(said, "smilestrength"), said.tensors["landmarks"][:, COLUMNS.index("smile")])
    assert torch.equal(number(said, "light3"), said.tensors["landmarks"][:, COLUMNS.index("light3")])


def test_the_independent_judge_speaks_alone() -> None:
    said = answers()
    smile = classes(said, Discrete("smile"), "independent")[:, 1]
    assert torch.equal(smile, said.attribute("Smiling", "independent"))
    assert torch.equal(number(said, "age", "independent"), said.tensors["faceres_age"])


@pytest.mark.parametrize("judge", ["labeller", "independent"])
@pytest.mark.parametrize("name", ["smile", "gender", "glasses"])
def test_the_voices_of_a_word_are_those_that_are_heard(judge: str, name: str) -> None:
    """Without any of them there is no answer, and with them alone it is the same."""
    attribute, said = Discrete(name), answers()
    heard = {"faceres": ("faceres_age", "faceres_male")}
    keys = [key for voice in voices(attribute, judge) for key in heard.get(voice, (voice,))]
    alone = Answers({key: said.tensors[key] for key in keys}, NAMES, list(COLUMNS))
    assert torch.equal(classes(alone, attribute, judge), classes(said, attribute, judge))


@pytest.mark.parametrize(("name", "judge", "count"), [("age", "labeller", 2), ("yaw", "labeller", 1), ("yaw", "b", 0)])
def test_how_many_read_a_number(name: str, judge: str, count: int) -> None:
    assert len(voices(Continuous(name, 0, 1), judge)) == count
