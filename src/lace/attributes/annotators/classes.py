"""Judges of small pictures: which of several classes each of them shows.

    p(c | picture) = softmax(l / T),   averaged over the picture and its mirror image

Two networks that have little in common, so that one can judge what the other has labelled:
    residual    convolutions between shortcuts (wide residual network, Zagoruyko and Komodakis, 2016), mean over pixels
    plain       pairs of convolutions with no shortcut, each pair at half the size, largest value over pixels
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import DataError
from ..card import read_with_card, write_with_card
from ..heads import mix
from ..schema import Discrete

__all__ = ["NETWORKS", "ClassJudge"]


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class Shortcut(nn.Module):
    """Two convolutions, added to what came in."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm, self.first = nn.BatchNorm2d(inputs), conv(inputs, outputs, stride=stride)
        self.between, self.second = nn.BatchNorm2d(outputs), conv(outputs, outputs)
        self.fit = conv(inputs, outputs, 1, stride) if (inputs, stride) != (outputs, 1) else None

    def forward(self, x: Tensor) -> Tensor:
        active = F.relu(self.norm(x))
        y = self.second(F.relu(self.between(self.first(active))))
        return y + (x if self.fit is None else self.fit(active))


class Residual(nn.Module):
    """Pictures [N, 3, S, S] -> features [N, widths[-1]]; each width is two shortcuts at half the size of the former."""

    def __init__(self, widths: Iterable[int]) -> None:
        super().__init__()
        first, *_, last = wide = [16, *widths]
        self.enter = conv(3, first)
        groups = [[Shortcut(a, b, 1 if k == 0 else 2), Shortcut(b, b, 1)] for k, (a, b) in enumerate(pairwise(wide))]
        self.blocks = nn.Sequential(*(block for group in groups for block in group))
        self.leave = nn.BatchNorm2d(last)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.leave(self.blocks(self.enter(x)))).mean(dim=(2, 3))


class Plain(nn.Module):
    """Pictures [N, 3, S, S] -> features [N, widths[-1]]; each width is two convolutions at half the size."""

    def __init__(self, widths: Iterable[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv(3, 32), nn.BatchNorm2d(32), nn.GELU()]
        for a, b in pairwise([32, *widths]):
            layers += [conv(a, b), nn.MaxPool2d(2), nn.BatchNorm2d(b), nn.GELU()]
            layers += [conv(b, b), nn.BatchNorm2d(b), nn.GELU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).amax(dim=(2, 3))


NETWORKS: dict[str, type[Residual] | type[Plain]] = {"residual": Residual, "plain": Plain}


class ClassJudge(nn.Module):
    """Pictures [N, 3, S, S] in [-1, 1] -> logits [N, classes]."""

    # Pictures that are looked at together.
    batch = 1024
    temperature: Tensor

    def __init__(self, names: list[str], network: str, widths: Iterable[int]) -> None:
        super().__init__()
        self.names, self.network, self.widths = names, network, list(widths)
        self.backbone = NETWORKS[network](self.widths)
        self.classify = nn.Linear(self.widths[-1], len(names))
        self.register_buffer("temperature", torch.ones(()))

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        return f"a {self.network} network, {self.widths[-1]} numbers"

    def forward(self, pictures: Tensor) -> Tensor:
        return self.classify(self.backbone(pictures))

    def logits(self, attribute: Discrete, pictures: Tensor) -> Tensor:
        """The calibrated logits of an attribute's classes, to go uphill on: [N, classes]."""
        columns = [self.names.index(name) for name in attribute.classes]
        return self(pictures)[:, columns] / self.temperature

    def look(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """p(class | picture) averaged over both sides [N, classes], and features of the plain side."""
        logits, features = self.sides(pictures)
        return mix(logits / self.temperature).exp(), features

    def sides(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the plain and of the mirrored side [2, N, classes], and features of the plain one."""
        features = torch.stack([self.backbone(side) for side in (pictures, pictures.flip(-1))])
        return self.classify(features), features[0]

    def save(self, path: Path, card: dict[str, Any]) -> None:
        """Write weights in half precision with a card."""
        about = {"names": self.names, "network": self.network, "widths": self.widths}
        write_with_card(path, self.state_dict(), {**card, **about})

    @classmethod
    def load(cls, path: Path) -> ClassJudge:
        """Read what :meth:`save` wrote."""
        card, state = read_with_card(path)
        try:
            judge = cls(card["names"], card["network"], card["widths"])
            judge.load_state_dict(state)
        except (KeyError, RuntimeError, TypeError) as error:
            raise DataError(f"{path} does not hold a judge of this version ({error}).") from error
        return judge.requires_grad_(False).eval()
