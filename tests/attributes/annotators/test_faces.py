"""A panel asks only the judges it needs, keeps rows in order, and reads the labelled faces as their labels say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import lace
from lace.attributes.annotators import celeba, desk, faces
from lace.attributes.annotators.desk import CpuDesk
from lace.attributes.annotators.faces import FacePanel
from lace.attributes.annotators.landmarks import COLUMNS
from lace.attributes.schema import Continuous, Discrete, Schema

RECIPE = Path(__file__).parents[3] / "recipes" / "ffhq"
SCHEMA = Schema([Discrete("glasses"), Discrete("smile"), Continuous("yaw", -50, 50), Continuous("age", 0, 80)])


class Yes:
    """Says yes to all as likely as the picture is bright."""

    asked = 0
    names = (*celeba.WORDS.values(), *celeba.HAIR)

    def probabilities(self, faces: torch.Tensor) -> torch.Tensor:
        self.asked += 1
        return (faces.mean(dim=(1, 2, 3)) / 2 + 0.5)[:, None].repeat(1, len(self.names))


class Landmarks:
    """Every column is the brightness of the picture, 0 to 255."""

    def __init__(self, threads: int | None = None) -> None:
        pass

    def __call__(self, pictures: np.ndarray) -> np.ndarray:
        assert pictures.shape[1:] == (384, 384, 3)
        return np.repeat(pictures.mean(axis=(1, 2, 3))[:, None], len(COLUMNS), axis=1).astype(np.float32)

    def close(self) -> None:
        pass


class Years(torch.nn.Module):
    """Brightness in years, 0 to 255: of the one judge as it is, of the other half of it."""

    def __init__(self, threads: int = 0) -> None:
        super().__init__()

    def __call__(self, faces: torch.Tensor) -> Any:
        return faces.mean(dim=(1, 2, 3)) * 127.5 + 127.5


class Half(Years):
    def __call__(self, faces: torch.Tensor) -> Any:
        return super().__call__(faces) / 2, torch.full((len(faces),), 0.5)


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Judges whose answers are known; the list names those that were made."""
    made: list[str] = []

    def counted(judge: type) -> Any:
        return lambda *args: made.append(judge.__name__) or judge(*args)

    monkeypatch.setattr(desk, "Landmarker", counted(Landmarks))
    monkeypatch.setattr(desk, "AgeV1", counted(Years))
    monkeypatch.setattr(faces, "FaceRes", counted(Half))
    return made


def panel(name: str = "labeller") -> FacePanel:
    return FacePanel(Yes(), SCHEMA, name)


def pictures(n: int) -> torch.Tensor:
    """Plain pictures of brightness 0, 10, 20, ... of 255."""
    return (torch.arange(n) * 10 / 127.5 - 1)[:, None, None, None].expand(-1, 3, 96, 96)


def test_labels_are_in_the_layout_and_in_order(judges: list[str]) -> None:
    with panel() as asked:
        found = asked.read(pictures(9).split(2))
    bright = 10.0 * torch.arange(9)
    assert torch.allclose(found[:, SCHEMA.slice("yaw").start], (bright + 50) / 100, atol=1e-4)
    assert torch.allclose(found[:, SCHEMA.slice("age").start], 0.75 * bright / 80, atol=1e-4)
    assert torch.allclose(found[:, 1], bright / 255, atol=1e-4)
    assert torch.allclose(found[:, :4].view(9, 2, 2).sum(dim=2), torch.ones(9, 2))
    assert sorted(judges) == ["Half", "Landmarks", "Years"]


@pytest.mark.parametrize(
    ("names", "needed"),
    [(["glasses"], []), (["smile"], ["Landmarks"]), (["age"], ["Half", "Years"]), (["yaw", "glasses"], ["Landmarks"])],
)
def test_only_the_judges_that_are_needed(judges: list[str], names: list[str], needed: list[str]) -> None:
    with panel() as asked:
        found = asked(pictures(2), names)
        assert sorted(judges) == needed
        assert asked.judge.asked == int(bool({"glasses", "smile"} & set(names)))
        whole = asked(pictures(2))
    columns = [k for name in names for k in range(SCHEMA.columns)[SCHEMA.slice(name)]]
    assert torch.equal(found[:, columns], whole[:, columns])
    assert int(found.isnan().sum()) == 2 * (SCHEMA.columns - len(columns))


def test_the_independent_panel(judges: list[str]) -> None:
    with panel("independent") as asked:
        found = asked(pictures(3))
    assert found[:, SCHEMA.slice("yaw").start].isnan().all()
    assert torch.allclose(found[:, SCHEMA.slice("age").start], 0.5 * 10.0 * torch.arange(3) / 80, atol=1e-4)
    assert judges == ["Half"]


def test_a_desk_of_processes_answers() -> None:
    hired = CpuDesk(workers=1)
    assert hired.submit(pictures(1), wanted=()).result() == {}
    hired.close()


@torch.inference_mode()
def test_the_labels_that_ship_are_read_again(ffhq: lace.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faces 0 and 1 of the labelled ones, drawn again: glasses and beard to a byte's rounding."""
    monkeypatch.syspath_prepend(str(RECIPE))
    from common import latents

    index = torch.arange(2)
    words = Schema([Discrete("glasses"), Discrete("beard")])
    with FacePanel.load(RECIPE / "judges", words, torch.device("cpu")) as asked:
        found = asked(ffhq.generator.to_picture(latents(ffhq.generator, index)))
    shipped = load_file(RECIPE / "labels.safetensors")["classes"][:2].float() / 255
    # Each yes/no word has one column there: smile, glasses, gender, beard.
    assert torch.allclose(found[:, [1, 3]], shipped[:, [1, 3]], atol=0.01)
