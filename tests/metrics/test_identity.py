"""Identity: the crop's place, the loss, and what the published network says of faces."""

from __future__ import annotations

import pytest
import torch

import lace
from lace.metrics.identity import CROP, Identity, arcface_framing, identity_loss


@pytest.mark.parametrize("size", [1024, 512])
def test_the_crop_is_the_stated_square(size: int) -> None:
    """A picture of its own coordinates, 0 to 1: pixel k of 112 lies at corner + side (k + 1/2) / 112."""
    ramp = (torch.arange(size) + 0.5) / size
    pictures = torch.stack([ramp.expand(size, -1), ramp[:, None].expand(-1, size), torch.zeros(size, size)])[None]
    crop, (left, top, side) = arcface_framing(pictures)[0], CROP
    # The edges of an antialiased picture of a ramp lean inwards.
    places = (torch.arange(112) + 0.5)[4:-4] / 112
    assert torch.allclose(crop[0, 50, 4:-4], left + side * places, atol=1 / size)
    assert torch.allclose(crop[1, 4:-4, 50], top + side * places, atol=1 / size)


def test_the_loss_is_one_minus_the_cosine() -> None:
    angles = torch.tensor([0.0, 0.5, 1.5, 3.0])
    turned = torch.stack([angles.cos(), angles.sin()], dim=1)
    assert torch.allclose(identity_loss(torch.tensor([1.0, 0.0]), turned), 1 - angles.cos())


@torch.inference_mode()
def test_faces_know_themselves(ffhq: lace.Model) -> None:
    """A face in a mirror is the same person, another face is not."""
    identity, generator = Identity.load(), ffhq.generator
    faces = generator.to_picture(generator.to_w(generator.prior(3, torch.arange(4))))
    own = identity.embed(faces)
    assert torch.allclose(own.norm(dim=1), torch.ones(4), atol=1e-5)
    assert float(identity(faces, faces.flip(-1)).max()) < 0.15
    assert float(identity_loss(own, own.roll(1, dims=0)).min()) > 0.5
