"""The baselines' training scripts: what they print, and that they write what can be read back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from lace.attributes.card import read_card
from lace.attributes.heads import FunctionHeads
from lace.baselines.latent_jem import LatentJem, Walks
from lace.baselines.styleflow import StyleFlow

RECIPE = Path(__file__).parents[2] / "recipes" / "ffhq"


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RECIPE))


def test_obedience_counts_classes_and_measures_numbers() -> None:
    """Of four, three wear glasses, one is female, two smile, and their ages are off by 1, 3, 0 and 4 years."""
    from baseline import VALUES, obedience

    def yes(column: int):
        return lambda w: torch.stack([1 - w[:, column], w[:, column]], dim=1) * 9

    readers = [(VALUES[name], yes(k)) for k, name in enumerate(("glasses", "gender", "smile"))]
    heads = FunctionHeads([*readers, (VALUES["age"], lambda w: w[:, 3])])
    w = torch.tensor([[1.0, 1, 0, 56], [1, 1, 1, 52], [1, 1, 0, 55], [0, 0, 1, 59]])
    found = obedience(lambda formula: w, heads)
    assert found == {"glasses": [0.75], "female & smile & age=55": [0.25, 0.5, pytest.approx(2.0)]}


@pytest.mark.parametrize(("script", "kind"), [("train_styleflow", StyleFlow), ("train_latent_jem", LatentJem)])
def test_a_short_training_is_written_and_read_back(
    script: str, kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import baseline
    from common import latents, truncation
    from lace.weights import mobilestylegan
    from merge import read_labels

    def few(path: Path, device: str) -> tuple[object, torch.Tensor, torch.Tensor]:
        generator, index = mobilestylegan.load(), torch.arange(300)
        labels = read_labels(path)[0][:300, : baseline.VALUES.columns - 1]
        return generator, latents(generator, index), torch.cat([labels, 2 * truncation(index)[:, None] - 1], dim=1)

    module, out = __import__(script), tmp_path / "out.safetensors"
    for name, value in (("labelled", few), ("HELD_OUT", 20), ("ROWS", 10), ("DRAWS", 2)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "Walks", lambda eta: Walks(eta, steps=3), raising=False)
    arguments = ["--labels", str(RECIPE / "labels.safetensors"), "--out", str(out), "--minutes", "0.01"]
    monkeypatch.setattr(sys, "argv", [script, *arguments, "--batch", "4", "--device", "cpu"])
    module.main()
    card = read_card(out)
    assert card["measured"]["steps"] >= 1
    assert card["settings"] == {"batch": 4, "lr": 1e-3, "minutes": 0.01}
    assert {"device", "commit", "torch"} <= card.keys()
    assert "female & smile & age=55" in capsys.readouterr().out
    assert {"glasses", "haircolor", "yaw"} <= {attribute.name for attribute in kind.load(out).schema}
