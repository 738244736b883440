"""What is said of a face does not depend on who else is asked; benches without their baselines say so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lace
from lace.attributes.annotators.faces import FacePanel
from lace.bench.ffhq_conditional import PAPER, QUESTIONS, acc, columns, published, taken
from lace.bench.ffhq_zeroshot import right, terms
from lace.bench.gallery import FOLDER, drawn
from lace.bench.trained import BASELINES, missing, trained
from lace.bench.viewing import Seen, Viewing


def test_a_viewing_says_what_each_of_them_says_alone(ffhq: lace.Model) -> None:
    w, names, others = ffhq.at(["0:7"]).w, ("glasses", "haircolor"), ("hat",)
    watched: list[int] = []
    with Viewing(ffhq, quick=True) as viewing:
        seen = viewing.seen(w, names, others, lambda faces: watched.append(len(faces)))
    for panel, said, asked in (("labeller", seen.labels, names), ("independent", seen.second, (*names, *others))):
        with FacePanel.load(FOLDER, ffhq.schema, ffhq.device, panel) as alone:
            expected = alone.read(drawn(ffhq.generator, w), asked)
        assert torch.allclose(said, expected, atol=1e-5, equal_nan=True)
    assert watched == [1]


def test_accuracy_has_a_cell_for_each_column(ffhq: lace.Model) -> None:
    """Two faces: gender right for one, smiles for both, ages off by 4 and 12 years."""
    schema = ffhq.schema
    asked = torch.full((2, schema.columns), torch.nan)
    asked[:, schema.slice("gender")] = torch.tensor([1.0, 0])
    asked[:, schema.slice("smile")] = torch.tensor([0.0, 1])
    asked[:, schema.slice("age")] = 40 / 80
    labels = asked.clone()
    labels[1, schema.slice("gender")] = torch.tensor([0.2, 0.8])
    labels[:, schema.slice("age")] = torch.tensor([[44 / 80], [52 / 80]])
    second = asked.clone()
    second[:, schema.slice("age")] = torch.nan
    question = QUESTIONS["gender_smile_age"]
    cells = acc(Seen(labels, second, torch.zeros(2, 1)), asked, ffhq, question.names)
    named = dict(zip(columns(question)[4:], [*cells, *published("gender_smile_age", "ode")], strict=True))
    assert named["ACC gender"] == 0.5
    assert named["B gender"] == named["ACC smile"] == named["B smile"] == 1
    assert named["ACC age"] == pytest.approx(0.9)
    assert named["off by, age"] == pytest.approx(8)
    assert named["all"] == pytest.approx(0.95 / 2)
    assert named["all by B"] is None
    assert named["paper: ACC age"] == 0.914
    assert published("glasses", "exact 0") == (None,) * 4
    assert all(len(found.acc) == len(QUESTIONS[title].names) for title in PAPER for found in PAPER[title].values())


def test_the_first_of_each_combination_are_taken() -> None:
    assert taken([3, 2, 1], [1, 2, 0]).tolist() == [True, False, False, True, True, False]


def test_a_sentence_is_right_where_all_its_terms_are(ffhq: lace.Model) -> None:
    """15 years asked for: within 8 counts."""
    schema, formula = ffhq.schema, ffhq["glasses & age=15"]
    labels = torch.full((4, schema.columns), torch.nan)
    labels[:, schema.slice("glasses")] = torch.tensor([[0.1, 0.9], [0.1, 0.9], [0.6, 0.4], [0.1, 0.9]])
    labels[:, schema.slice("age").start] = torch.tensor([22.0, 24, 15, 8]) / 80
    assert right(terms(formula), labels, ffhq).tolist() == [1, 0, 0, 1]


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ffhq: lace.Model) -> None:
    monkeypatch.setattr("lace.bench.trained.FOLDER", tmp_path)
    assert trained(ffhq) == []
    assert all(name in missing() for name in BASELINES)
    assert "recipes/ffhq/README.md" in missing()
    for file in BASELINES.values():
        (tmp_path / file).touch()
    assert missing() == ""
