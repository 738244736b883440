"""A network that learns to tell what another function says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import lace
from lace.editing.likeness import Likeness, fit
from lace.metrics.identity import EMBEDDING, Identity


@pytest.fixture(scope="module")
def learned() -> tuple[Likeness, torch.Tensor]:
    """Of people given by A w, from 2,000 of them."""
    rng = torch.Generator().manual_seed(0)
    truth = torch.randn(EMBEDDING, 8, generator=rng)
    w = 3 + 2 * torch.randn(2000, 8, generator=rng)
    network = Likeness(8).initialise(rng)
    fit(network, w, F.normalize(w @ truth.T, dim=1), epochs=6, batch=100, lr=1e-3)
    return network, truth


def test_it_learns_whom_latents_show(learned: tuple[Likeness, torch.Tensor]) -> None:
    network, truth = learned
    w = 3 + 2 * torch.randn(200, 8, generator=torch.Generator().manual_seed(1))
    cosine = (network(w) * F.normalize(w @ truth.T, dim=1)).sum(dim=1)
    assert float(cosine.mean()) > 0.97
    assert torch.allclose(network(w).norm(dim=1), torch.ones(200), atol=1e-5)


def test_saved_networks_are_the_same(learned: tuple[Likeness, torch.Tensor], tmp_path: Path) -> None:
    network = learned[0].half().float()
    network.save(tmp_path / "like.safetensors", {"note": "kept"})
    w = torch.randn(5, 8)
    assert torch.equal(Likeness.load(tmp_path / "like.safetensors")(w), network(w))


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    from lace.attributes.card import write_with_card

    write_with_card(tmp_path / "other.safetensors", {"weight": torch.zeros(2)}, {})
    with pytest.raises(lace.DataError, match="does not hold a likeness"):
        Likeness.load(tmp_path / "other.safetensors")


def test_the_shipped_one_knows_faces(ffhq: lace.Model) -> None:
    """It comes nearer to each of eight faces than to any other of them, but for one at most."""
    w = ffhq.at([f"0:{k}" for k in range(8)]).w
    with torch.inference_mode():
        seen = torch.cat([Identity.load().embed(ffhq.generator.to_picture(one)) for one in w.split(1)])
        nearest = (ffhq.likeness(w) @ seen.T).argmax(dim=1)
    assert int((nearest == torch.arange(8)).sum()) >= 7
