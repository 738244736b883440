"""FID's network against torch-fidelity's own, run elsewhere on weights that are worked out here too; and its gate."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

from lace import rng
from lace.errors import WeightsError
from lace.metrics import inception
from lace.metrics.inception import WEIGHTS, Inception, resized, standard_weights

# What torch-fidelity 0.4.0's FeatureExtractorInceptionV3 says of the two pictures of `pictures`, with the weights of
# `network`: its features [2, 2048] times three vectors of normal numbers. It needs torchvision, so it is not run here.
THEIRS = {
    7: [[-2.3185, -1.2290, 28.2593], [-2.5328, -0.8481, 28.2471]],
    80: [[-2.5601, -1.4414, 28.7961], [-2.8406, -1.2750, 28.9347]],
}


def filled(name: str, value: torch.Tensor, k: int) -> torch.Tensor:
    """Numbers of variance 1, from nothing but arithmetic, scaled to keep the signal alive through 94 layers."""
    place = torch.arange(value.numel(), dtype=torch.float64)
    n = 12**0.5 * ((place * (place + k) * 0.6180339887498949) % 1 - 0.5).float().reshape(value.shape)
    if value.dim() > 1:
        return n * (2 / value[0].numel()) ** 0.5
    if name.endswith("var"):
        return 1 + 0.2 * n.abs()
    return 1 + 0.1 * n if name.endswith("bn.weight") else 0.1 * n


@pytest.fixture(scope="module")
def network() -> Inception:
    made = Inception().eval().requires_grad_(False)
    floating = [(name, value) for name, value in made.state_dict().items() if value.is_floating_point()]
    for k, (name, value) in enumerate(floating):
        value.copy_(filled(name, value, k))
    return made


def pictures(times: int) -> torch.Tensor:
    """Two pictures of 5 x 5 squares, each so many pixels wide."""
    squares = (rng.uniforms(1, torch.arange(2), 75, rng.ACCEPT).reshape(2, 3, 5, 5) * 255).round() / 127.5 - 1
    return squares.repeat_interleave(times, dim=2).repeat_interleave(times, dim=3)


@pytest.mark.parametrize("times", [7, 80])
def test_features_are_torch_fidelitys(network: Inception, times: int) -> None:
    with torch.inference_mode():
        found = network(pictures(times)) @ rng.normal(2, torch.arange(3), 2048).T
    assert torch.allclose(found, torch.tensor(THEIRS[times]), atol=2e-3)


def test_the_state_is_the_published_files(network: Inception) -> None:
    """23,834,568 weights as published for 1,000 classes; TensorFlow's graph has 1,008."""
    state = network.state_dict()
    assert sum(p.numel() for p in network.parameters()) == 23_834_568 + 8 * 2049
    assert len(state) == 94 * 6 + 2
    assert state["Mixed_5b.branch3x3dbl_3.conv.weight"].shape == (96, 96, 3, 3)
    assert state["Mixed_6c.branch7x7dbl_2.conv.weight"].shape == (160, 160, 7, 1)
    assert state["Mixed_7c.branch3x3dbl_3a.conv.weight"].shape == (384, 384, 1, 3)
    assert state["fc.weight"].shape == (1008, 2048)


def test_resizing_reads_between_pixels_from_the_corner() -> None:
    """A ramp stays a ramp until its last pixel, which is held."""
    ramp = torch.arange(64.0).expand(1, 3, 64, 64)
    truth = (torch.arange(299) * 64 / 299).clamp_max(63)
    assert torch.allclose(resized(ramp)[0, 1, 7], truth, atol=1e-4)
    assert torch.allclose(resized(ramp.mT)[0, 1, :, 7], truth, atol=1e-4)


def test_weights_are_found_and_known(network: Inception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch-fidelity's place first, then ours before it; and the loaded network is the saved one."""
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    assert standard_weights() is None
    for folder in (tmp_path / "hub" / "checkpoints", tmp_path / "home"):
        folder.mkdir(parents=True)
        torch.save(network.state_dict(), folder / WEIGHTS)
        assert standard_weights() == folder / WEIGHTS
    own = tmp_path / "home" / WEIGHTS
    with pytest.raises(WeightsError, match="comparable"):
        Inception.load(own)
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    monkeypatch.setattr(inception, "digest_in", lambda name: digest[:8])
    loaded = Inception.load(own)
    with torch.inference_mode():
        assert torch.equal(loaded(pictures(7)), network(pictures(7)))


def test_the_digest_is_that_of_the_name() -> None:
    assert inception.digest_in(WEIGHTS) == "6726825d"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be read"):
        Inception.load(tmp_path)
