"""Kernels of MobileStyleGAN's blocks against the same equations in torch, in full precision."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lace.generators.mobilestylegan import inverse_haar

kernels = pytest.importorskip(
    "lace.gpu.separable", reason="Triton is in the test extra for Linux: pip install 'lace[test]'"
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Halves have eleven bits; sums over channels round them as chance will have it.
BITS = 2.0**-11


def made(*shape: int, seed: int = 0) -> Tensor:
    """Numbers that halves hold exactly."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).half().float()


def there(x: Tensor) -> Tensor:
    """Channels last, in halves."""
    return x.permute(0, 2, 3, 1).contiguous().half().to(DEVICE)


def back(x: Tensor) -> Tensor:
    return x.float().cpu().permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    ("n", "channels", "height", "width"),
    [(1, 16, 1, 1), (2, 16, 3, 5), (1, 64, 2, 40), (3, 128, 1, 17), (1, 512, 2, 3)],
)
def test_rise(n: int, channels: int, height: int, width: int) -> None:
    """Sizes that are no power of two, and rows longer than one program takes."""
    y, scale = made(n, 4 * channels, height, width), made(n, 4 * channels, seed=1)
    found = back(kernels.rise(there(y), scale.to(DEVICE)))
    truth = inverse_haar(y * scale[:, :, None, None])
    assert found.shape == (n, channels, 2 * height, 2 * width)
    # The sum itself is rounded once.
    assert torch.allclose(found, truth, rtol=BITS, atol=1e-5)


def plain(x: Tensor, scale: Tensor, depthwise: Tensor, pointwise: Tensor, noise: Tensor, bias: Tensor) -> Tensor:
    channels = x.shape[1]
    weight = depthwise.T.reshape(channels, 1, 3, 3)
    deep = F.conv2d((x * scale[:, :, None, None]).double(), weight.double(), padding=1, groups=channels)
    total = F.conv2d(deep, pointwise.T[:, :, None, None].double(), bias.double()) + noise.double()
    return F.leaky_relu(total, 0.2).float()


@pytest.mark.parametrize(
    ("n", "inputs", "outputs", "height", "width"),
    [
        (1, 16, 64, 1, 1),
        (2, 16, 64, 4, 16),
        (1, 64, 64, 5, 17),
        (2, 32, 128, 9, 33),
        (3, 16, 256, 3, 2),
        (1, 128, 512, 4, 20),
    ],
)
def test_separable(n: int, inputs: int, outputs: int, height: int, width: int) -> None:
    """Whole tiles and parts of them, several pictures, and more columns than one program makes."""
    x, scale = made(n, inputs, height, width), made(n, inputs, seed=1)
    depthwise, pointwise = made(9, inputs, seed=2), made(inputs, outputs, seed=3) / inputs**0.5
    pointwise = pointwise.half().float()
    noise, bias = made(height, width, seed=4), made(outputs, seed=5)
    weights = [scale, depthwise, pointwise.half(), noise, bias]
    found = back(kernels.separable(there(x), *(weight.to(DEVICE) for weight in weights)))
    truth = plain(x, scale, depthwise, pointwise, noise, bias)
    assert found.shape == truth.shape
    # The depthwise sums (some three) are rounded once each, and so is the result.
    assert torch.allclose(found, truth, rtol=2 * BITS, atol=20 * BITS)
    assert float((found - truth).square().mean().sqrt()) < 3 * BITS


def test_a_picture_ends_at_its_edges() -> None:
    """A single bright pixel in a corner reaches three others, and no other picture, row or side."""
    x = torch.zeros(2, 16, 6, 18)
    x[0, :, 0, 17] = 1
    parts = (torch.ones(2, 16), torch.ones(9, 16), torch.ones(16, 64).half(), torch.zeros(6, 18), torch.zeros(64))
    found = back(kernels.separable(there(x), *(part.to(DEVICE) for part in parts)))
    expected = torch.zeros(6, 18)
    expected[:2, 16:] = 16
    assert torch.equal(found[0], expected.expand(64, -1, -1))
    assert float(found[1].abs().max()) == 0
