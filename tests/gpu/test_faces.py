"""Pictures by kernels against the synthesis that they stand for."""

from __future__ import annotations

import pytest
import torch

from lace.generators import mobilestylegan
from lace.generators.mobilestylegan import MobileStyleGAN, Synthesis

faces = pytest.importorskip("lace.gpu.faces", reason="Triton is in the test extra for Linux: pip install 'lace[test]'")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def synthesis() -> Synthesis:
    """Two blocks, 4x4 to 16x16 pixels and a picture of 32x32, in which every row of w tells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mobilestylegan, "CHANNELS", (64, 64, 64))
        synthesis = Synthesis().requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for name, parameter in synthesis.named_parameters():
        inputs = 100 if parameter.dim() == 1 or "noise" in name else parameter[0].numel()
        parameter.normal_(0, inputs**-0.5, generator=generator)
        if ("style" in name or "rise" in name) and name.endswith("bias"):
            parameter.add_(1)
    return synthesis.to(DEVICE)


@torch.inference_mode()
@pytest.mark.parametrize("shape", [(1, 512), (2, 512), (2, 8, 512)], ids=["alone", "together", "for each style"])
def test_faces_are_those_of_the_synthesis(synthesis: Synthesis, shape: tuple[int, ...]) -> None:
    w = torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    truth = synthesis(w)
    (found,) = faces.Faces(synthesis)(w)
    assert found.dtype == torch.float32
    assert found.shape == truth.shape == (len(w), 3, 32, 32)
    error, size = (found - truth).square().mean().sqrt(), truth.square().mean().sqrt()
    assert 0.1 < size < 100
    assert error < 0.003 * size


def test_weights_that_move_leave_their_layout_behind() -> None:
    generator = MobileStyleGAN()
    generator._quick = lambda w: (w,)
    assert generator.to(torch.float64)._quick is None
