"""The judge of attributes: one network, one sigmoid for each of CelebA's attributes.

p(attribute | picture) = sigmoid(l / T),  l = Linear(EfficientNet-Lite0(picture)),  averaged over small shifts and flips
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ...files import written_whole
from ..card import read_card
from ..schema import Discrete
from .celeba import WORDS
from .efficientnet import FEATURES, EfficientNetLite0

__all__ = ["Judge", "celeba_framing", "eight_bit"]

# CelebA's aligned crop (25, 45, 153, 173) as fractions of an FFHQ picture: left, top, right, bottom.
FRAME = (88 / 1024, 41 / 1024, 939 / 1024, 892 / 1024)
# What the judge was trained on, and what it looks at.
PIXELS, INPUT = 128, 160
# Shifts of the crop, as fractions of the picture, over which an answer is averaged.
VIEWS = ((0.0, 0.0), (0.012, 0.008), (-0.012, -0.008))


def eight_bit(pictures: Tensor) -> Tensor:
    """Pictures as a PNG would hold them, in [-1, 1]."""
    return (pictures * 127.5 + 127.5).round().clamp(0, 255) / 127.5 - 1


def celeba_framing(faces: Tensor, shift: tuple[float, float] = (0.0, 0.0)) -> Tensor:
    """FFHQ-framed faces [N, 3, S, S] cropped as CelebA crops them, at the judge's input size."""
    size = faces.shape[-1]
    left, top, right, bottom = (round((edge + shift[k % 2]) * size) for k, edge in enumerate(FRAME))
    crop = faces[:, :, max(top, 0) : bottom, max(left, 0) : right]
    small = F.interpolate(crop, size=(PIXELS, PIXELS), mode="bilinear", antialias=True)
    return enlarge(small)


def enlarge(crops: Tensor) -> Tensor:
    """128-pixel crops at the judge's input size."""
    return F.interpolate(crops, size=(INPUT, INPUT), mode="bilinear", align_corners=False)


class Judge(nn.Module):
    """Crops in CelebA's framing [N, 3, 160, 160] in [-1, 1] -> logits [N, attributes]."""

    about = f"EfficientNet-Lite0, CelebA, {FEATURES} numbers"
    # Pictures that are looked at together.
    batch = 16
    temperature: Tensor

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names
        self.backbone = EfficientNetLite0()
        self.classify = nn.Linear(FEATURES, len(names))
        self.register_buffer("temperature", torch.ones(len(names)))

    def forward(self, crops: Tensor) -> Tensor:
        return self.classify(F.dropout(self.backbone(crops), 0.2, self.training))

    def logits(self, attribute: Discrete, faces: Tensor) -> Tensor:
        """The calibrated logits of a yes/no word, to go uphill on: [N, 2]."""
        column = self.names.index(WORDS[attribute.name])
        yes = self(celeba_framing(faces))[:, column] / self.temperature[column]
        return torch.stack([torch.zeros_like(yes), yes], dim=1)

    def look(self, faces: Tensor) -> tuple[Tensor, Tensor]:
        """p(attribute | face) averaged over views [N, attributes], and features of the plain view [N, 1280].

        Faces are FFHQ-framed [N, 3, S, S].
        """
        crops = [celeba_framing(faces, shift) for shift in VIEWS]
        views = [self.backbone(view) for crop in crops for view in (crop, crop.flip(-1))]
        answers = [(self.classify(view).float() / self.temperature).sigmoid() for view in views]
        return torch.stack(answers).mean(dim=0), views[0]

    @torch.inference_mode()
    def probabilities(self, faces: Tensor) -> Tensor:
        """p(attribute | face) alone."""
        return self.look(faces)[0]

    def save(self, path: Path, card: dict[str, Any]) -> None:
        """Write weights in half precision with a card."""
        tensors = {name: value.half().contiguous() for name, value in self.state_dict().items()}
        with written_whole(path) as beside:
            save_file(tensors, beside, metadata={"card": json.dumps({**card, "names": self.names})})

    @classmethod
    def load(cls, path: Path) -> Judge:
        """Read what :meth:`save` wrote."""
        judge = cls(read_card(path)["names"])
        judge.load_state_dict(load_file(path))
        return judge.requires_grad_(False).eval()
