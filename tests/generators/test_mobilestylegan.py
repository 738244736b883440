"""The FFHQ generator against OpenVINO's own run of the published graph, and against itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import lace
from lace.generators.mobilestylegan import MobileStyleGAN, inverse_haar
from lace.weights.packages import RANDOM_FACE, fetch

ov = pytest.importorskip("openvino", reason="OpenVINO is in the test extra: pip install 'lace[test]'")


@pytest.fixture(scope="module")
def generator(ffhq: lace.Model) -> MobileStyleGAN:
    assert isinstance(ffhq.generator, MobileStyleGAN)
    return ffhq.generator


@pytest.fixture(scope="module")
def published() -> Path:
    """The package's own graphs."""
    return fetch(RANDOM_FACE)


def run(folder: Path, net: str, rows: torch.Tensor) -> torch.Tensor:
    """Rows, one by one, through an IR in OpenVINO at full precision."""
    compiled = ov.Core().compile_model(folder / f"{net}Network.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return torch.from_numpy(np.concatenate([compiled([row.numpy()])[0] for row in rows.split(1)]))


@torch.inference_mode()
def test_mapping_equals_openvino(generator: MobileStyleGAN, published: Path) -> None:
    z = generator.prior(0, torch.arange(64))
    assert (generator.mapping(z) - run(published, "Mapping", z)).abs().max() < 1e-5


@torch.inference_mode()
@pytest.mark.parametrize("psi", [0.5, 1.0])
def test_pictures_equal_openvino(generator: MobileStyleGAN, published: Path, psi: float) -> None:
    w = generator.truncate(generator.mapping(generator.prior(1, torch.arange(3))), psi)
    assert (generator.to_picture(w) - run(published, "Synthesis", w)).abs().max() < 1e-3


@torch.inference_mode()
def test_a_picture_is_the_same_alone_and_in_a_batch(generator: MobileStyleGAN) -> None:
    w = generator.to_w(generator.prior(2, torch.arange(3)))
    together, alone = generator.synthesis(w), generator.to_picture(w[1:2])
    assert (together[1] - alone[0]).abs().max() < 1e-3


@torch.inference_mode()
def test_one_row_for_each_style(generator: MobileStyleGAN) -> None:
    """w repeated 23 times is w; changing the last styles leaves coarse structure."""
    w = generator.to_w(generator.prior(3, torch.arange(2)))
    rows = w[:1, None].repeat(1, 23, 1)
    plain = generator.to_picture(w[:1])
    assert generator.synthesis.styles == 23
    assert torch.equal(generator.to_picture(rows), plain)
    rows[:, 16:] = w[1]
    mixed = generator.to_picture(rows)
    coarse = torch.nn.functional.avg_pool2d(mixed - plain, 128)
    assert 0.02 < (mixed - plain).abs().mean() < 0.6
    assert coarse.abs().mean() < (generator.to_picture(w[1:]) - plain).abs().mean()


@torch.inference_mode()
def test_truncation(generator: MobileStyleGAN) -> None:
    w = generator.mapping(generator.prior(4, torch.arange(5)))
    assert torch.equal(generator.truncate(w, 1.0), w) or (generator.truncate(w, 1.0) - w).abs().max() < 1e-6
    assert torch.allclose(generator.truncate(w, 0.0), generator.w_mean.expand(5, -1))
    half = generator.truncate(w, torch.full((5, 1), 0.5))
    assert torch.allclose(half, (w + generator.w_mean) / 2, atol=1e-6)


@torch.inference_mode()
def test_mean_of_w_is_the_mean(generator: MobileStyleGAN) -> None:
    """Fresh draws; every coordinate within 5 standard errors."""
    w = generator.mapping(generator.prior(12345, torch.arange(8192)))
    error = w.std(dim=0) * (1 / 8192 + 1 / 2**16) ** 0.5
    assert ((w.mean(dim=0) - generator.w_mean).abs() < 5 * error).all()


def test_scale_of_z_does_not_matter(generator: MobileStyleGAN) -> None:
    z = generator.prior(5, torch.arange(4))
    assert torch.allclose(generator.mapping(3 * z), generator.mapping(z), atol=1e-5)


def test_gradients_equal_differences() -> None:
    """A small synthesis in double precision against central differences, singly and in a batch."""
    torch.manual_seed(0)
    generator = MobileStyleGAN().double()
    for parameter in generator.synthesis.parameters():
        parameter.data.normal_(0, 0.05)
    w = torch.randn(2, 512, dtype=torch.float64)
    direction = torch.randn_like(w)
    weight = torch.randn(8, 8, dtype=torch.float64)

    def value(w: torch.Tensor) -> torch.Tensor:
        x = generator.synthesis.first(generator.synthesis.constant.expand(len(w), -1, -1, -1), w)
        x = generator.synthesis.blocks[0](x, w[:, None].expand(-1, 3, -1))
        return (x * weight).square().mean()

    for rows in (w, w[:1]):
        rows = rows.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(value(rows), rows)
        step = 1e-5 * direction[: len(rows)]
        with torch.no_grad():
            difference = (value(rows + step) - value(rows - step)) / 2e-5
        assert torch.allclose((gradient * direction[: len(rows)]).sum(), difference, rtol=1e-5)


def test_inverse_haar_undoes_haar() -> None:
    """Two-dimensional Haar bands made by sums and differences of 2x2 cells."""
    x = torch.randn(2, 3, 8, 10)
    a, b, c, d = x[..., 0::2, 0::2], x[..., 0::2, 1::2], x[..., 1::2, 0::2], x[..., 1::2, 1::2]
    ll, hl, lh, hh = (a + b + c + d) / 4, (a - b + c - d) / 4, (a + b - c - d) / 4, (a - b - c + d) / 4
    bands = torch.cat([ll, torch.stack([lh, hl, hh], dim=2).flatten(1, 2)], dim=1)
    assert torch.allclose(inverse_haar(bands), x, atol=1e-6)


@torch.inference_mode()
@pytest.mark.parametrize(("dtype", "mean"), [(torch.float16, 0.002), (torch.bfloat16, 0.012)])
def test_half_precision_is_close(generator: MobileStyleGAN, dtype: torch.dtype, mean: float) -> None:
    """In [-1, 1]; one step of an 8-bit picture is 0.008."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    w = generator.to_w(generator.prior(6, torch.arange(1)))
    half = MobileStyleGAN().to(device, dtype)
    half.load_state_dict(generator.state_dict())
    assert (half.draw(w.to(device)).cpu() - generator.to_picture(w)).abs().mean() < mean


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@torch.inference_mode()
def test_a_gpu_draws_the_same_pictures(generator: MobileStyleGAN) -> None:
    w = generator.to_w(generator.prior(7, torch.arange(2)))
    """In full float32; the shorter products that GPUs take by default (TF32) differ by up to 0.02 in single pixels."""
    there = MobileStyleGAN().cuda()
    there.load_state_dict(generator.state_dict())
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=False):
        assert (there.draw(w.cuda()).cpu() - generator.to_picture(w)).abs().max() < 1e-3
    for _ in range(3):
        # In half precision by kernels, and recorded when it is asked again.
        assert (there.to_picture(w.cuda()).cpu() - generator.to_picture(w)).abs().mean() < 0.002
