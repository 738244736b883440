"""Baselines as contenders draw what they draw by themselves, and know how long they were trained."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lace
from lace.attributes.schema import Continuous, Schema
from lace.baselines.latent_jem import LatentJem, Walks
from lace.baselines.styleflow import StyleFlow
from lace.baselines.values import asked_values
from lace.bench.trained import BASELINES, trained


@pytest.fixture
def folder(ffhq: lace.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Untrained weights of both, the Latent-JEM with and without a buffer."""
    words = Schema(ffhq.schema[name] for name in ("glasses", "age"))
    values = Schema((*words, Continuous("psi", 0.5, 1)))
    random = torch.Generator().manual_seed(0)
    flow = StyleFlow(values, 512, torch.rand(50, values.columns, generator=random), hidden=8).initialise(random)
    flow.save(tmp_path / BASELINES["StyleFlow"], {"measured": {"seconds": 300}})
    for name, size in (("Latent-JEM, eta 0.1", 0), ("Latent-JEM, eta 0.1, replay", 5)):
        jem = LatentJem(words, 512, Walks(steps=3), size)
        jem.heads.initialise(random)
        jem.buffer = torch.randn(size, 512, generator=random)
        jem.save(tmp_path / BASELINES[name], {"measured": {"seconds": 200}})
    monkeypatch.setattr("lace.bench.trained.FOLDER", tmp_path)
    return tmp_path


def test_contenders_draw_as_the_baselines_do(folder: Path, ffhq: lace.Model) -> None:
    found = {contender.name: contender for contender in trained(ffhq)}
    assert {name: contender.seconds for name, contender in found.items()} == {
        "StyleFlow": 300,
        "Latent-JEM, eta 0.1": 200,
        "Latent-JEM, eta 0.1, replay": 200,
    }
    drawn = {name: contender.draw(ffhq, "glasses & age=55", 4, 9).w for name, contender in found.items()}
    index = torch.arange(4)
    flow = StyleFlow.load(folder / BASELINES["StyleFlow"])
    row = asked_values(ffhq["glasses & age=55"], flow.schema)
    row[-1] = (0.7 - 0.5) / 0.5
    assert torch.allclose(drawn["StyleFlow"], flow.sample(row, 9, index), atol=1e-4)
    for name in found.keys() - {"StyleFlow"}:
        jem = LatentJem.load(folder / BASELINES[name])
        starts = jem.remembered(9, index) if "replay" in name else ffhq.generator.to_w(ffhq.generator.prior(9, index))
        assert torch.allclose(drawn[name], jem.sample(row[:-1], starts, 9, index), atol=1e-4)
