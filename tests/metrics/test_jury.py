"""What the jury sees and says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lace.attributes.annotators.judge import Judge
from lace.attributes.schema import Discrete
from lace.errors import DataError
from lace.metrics.jury import Jury, Verdict


def judge(seed: int) -> Judge:
    torch.manual_seed(seed)
    return Judge(["Male", "Eyeglasses"]).eval()


def test_pictures_are_seen_as_a_png_holds_them() -> None:
    """Values between two steps of eight bits, and beyond black and white, are the same picture."""
    jury = Jury({"labeller": judge(0), "independent": judge(1)})
    steps = torch.randint(0, 256, (2, 3, 96, 96), generator=torch.Generator().manual_seed(0))
    exact = steps / 127.5 - 1
    off = torch.where(steps == 255, exact + 0.3, exact + 0.4 / 127.5)
    for name in ("labeller", "independent"):
        assert torch.equal(jury(exact).answers[name], jury(off).answers[name])


def test_features_are_the_independent_judges() -> None:
    own, other = judge(0), judge(1)
    faces = torch.rand(2, 3, 96, 96, generator=torch.Generator().manual_seed(0)).mul(255).round() / 127.5 - 1
    verdict = Jury({"labeller": own, "independent": other})(faces)
    with torch.inference_mode():
        assert torch.equal(verdict.features, other.look(faces)[1])
        assert torch.equal(verdict.answers["labeller"], own.probabilities(faces))


def test_classes_by_each_judge() -> None:
    """The second column is glasses, the first male."""
    answers = {
        "labeller": torch.tensor([[0.9, 0.2], [0.1, 0.8]]),
        "independent": torch.tensor([[0.9, 0.7], [0.1, 0.6]]),
    }
    verdict = Verdict(("Male", "Eyeglasses"), answers, torch.zeros(2, 4))
    assert verdict.classes(Discrete("glasses"), "labeller").tolist() == [0, 1]
    assert verdict.classes(Discrete("glasses"), "independent").tolist() == [1, 1]
    assert verdict.classes(Discrete("gender", ("female", "male")), "labeller").tolist() == [1, 0]
    assert verdict[1:].classes(Discrete("glasses"), "labeller").tolist() == [1]


def test_judges_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="checkout of LACE"):
        Jury.load(tmp_path, torch.device("cpu"))
