"""The user's own pictures as a judge: a probe on a network's features tells their folders apart.

    p(c | x) = softmax(B f(x)),   f = EfficientNet-Lite0 (ImageNet),   |B|^2 penalised as cross-validation likes best

Own pictures are not the generator's. How well a second probe tells the two kinds apart is the domain gap: at an AUC of
0.5 they look alike to the network; near 1 they do not, and what the first probe learned may not carry over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from tqdm import tqdm

from ...attributes.annotators.efficientnet import EfficientNetLite0, imagenet_state
from ...attributes.schema import Attribute, Continuous
from ...errors import DataError
from ...weights.packages import EFFICIENTNET, fetch
from ..lesson import auc
from .base import Judge, Pictures, resized

__all__ = ["Backbone", "ExamplesJudge", "Probe"]

PIXELS = 224
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
FEWEST = 10
PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3)
FOLDS = 5
# Generated pictures that are enough to tell how they differ.
COMPARED = 500


class Probe:
    """Multinomial logistic regression on standardised features, its penalty chosen by cross-validation."""

    def __init__(self, features: Tensor, classes: Tensor, count: int) -> None:
        self._mean, self._std = features.mean(dim=0), features.std(dim=0).clamp_min(1e-6)
        x = self._scaled(features)
        folds = torch.randperm(len(x), generator=torch.Generator().manual_seed(0)) % FOLDS
        held = {penalty: torch.empty(len(x), count) for penalty in PENALTIES}
        for fold in range(FOLDS):
            inside, outside = folds != fold, folds == fold
            for penalty in PENALTIES:
                held[penalty][outside] = x[outside] @ fitted(x[inside], classes[inside], count, penalty)
        errors = {penalty: float(F.cross_entropy(logits, classes)) for penalty, logits in held.items()}
        self.penalty = min(errors, key=lambda penalty: errors[penalty])
        # Each example as probes answered that never saw it.
        self.held_out = held[self.penalty]
        self._slopes = fitted(x, classes, count, self.penalty)

    def __call__(self, features: Tensor) -> Tensor:
        return self._scaled(features) @ self._slopes

    def _scaled(self, features: Tensor) -> Tensor:
        x = (features - self._mean) / self._std / features.shape[1] ** 0.5
        return torch.cat([x, torch.ones(len(x), 1)], dim=1)


def fitted(x: Tensor, classes: Tensor, count: int, penalty: float) -> Tensor:
    """Slopes [features + 1, count] by L-BFGS; the constant is not penalised."""
    slopes = torch.zeros(x.shape[1], count, requires_grad=True)
    optimiser = torch.optim.LBFGS([slopes], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        error = F.cross_entropy(x @ slopes, classes) + penalty * slopes[:-1].square().sum() / x.shape[1]
        error.backward()
        return error

    with torch.enable_grad():
        optimiser.step(closure)
    return slopes.detach()


class Backbone:
    """Features of pictures [N, 1280], worked out on a device of their own."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self._device = torch.device(device)
        self._net = EfficientNetLite0()
        self._net.load_state_dict(imagenet_state(str(fetch(EFFICIENTNET) / "efficientnet-lite0-57934424.pth")))
        self._net.to(self._device).eval().requires_grad_(False)

    @torch.no_grad()
    def __call__(self, pictures: Pictures) -> Tensor:
        return self._net(resized(pictures, PIXELS, PIXELS, self._device) / 127.5 - 1).cpu()


class ExamplesJudge(Judge):
    """Learns from a folder of pictures for each class; for a yes/no word the folder of yes comes first."""

    def __init__(self, attribute: Attribute, folders: Sequence[Path], backbone: Any = None) -> None:
        if isinstance(attribute, Continuous):
            raise DataError("Folders of examples tell classes apart, not numbers; leave out --range.")
        if len(folders) != attribute.columns:
            raise DataError(
                f"Give {attribute.columns} folders of examples, in the order {order_of(attribute.classes)}."
            )
        # A yes/no word's classes are no and yes; people name the folder of yes first.
        ordered = folders[::-1] if attribute.is_yes_no else folders
        files = [pictures_in(folder) for folder in ordered]
        self._features = backbone or Backbone()
        everything = [path for group in files for path in group]
        self._own = torch.cat(
            [
                self._features(opened(path))
                for path in tqdm(everything, desc="Reading examples", disable=None, leave=False)
            ]
        )
        self._classes = torch.cat([torch.full((len(group),), k) for k, group in enumerate(files)])
        self._probe = Probe(self._own, self._classes, attribute.columns)
        self._generated: list[Tensor] = []
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in everything)).hexdigest()[:12]
        self.about = {"kind": "examples", "name": ", ".join(folder.name for folder in folders), "sha256": digest}

    def __call__(self, pictures: Pictures) -> NDArray[Any]:
        features = self._features(pictures)
        if sum(map(len, self._generated)) < COMPARED:
            self._generated.append(features)
        return self._probe(features).double().softmax(dim=1).numpy()

    def notes(self) -> dict[str, Any]:
        """How well the probe knows the examples, and how far those are from what is drawn."""
        right = (self._probe.held_out.argmax(dim=1) == self._classes).double().mean()
        notes: dict[str, Any] = {"examples": len(self._own), "accuracy_on_examples": float(right)}
        drawn = torch.cat(self._generated) if self._generated else self._own[:0]
        if len(drawn) >= FEWEST:
            notes["domain_gap"] = domain_gap(self._own, drawn)
        return notes


def domain_gap(own: Tensor, drawn: Tensor) -> float:
    """The AUC with which a probe tells examples from generated pictures that it never saw; guessing has 0.5 at best.

    Below that lie pictures that are in both: the one that is held out looks like its twin, which is of the other kind.
    """
    features = torch.cat([own, drawn])
    kinds = torch.cat([torch.zeros(len(own)), torch.ones(len(drawn))]).long()
    score = Probe(features, kinds, 2).held_out @ torch.tensor([-1.0, 1.0])
    return max(float(auc(score, (kinds == 1).float(), (kinds == 0).float())), 0.5)


def order_of(classes: Sequence[str]) -> str:
    return "yes, no" if tuple(classes) == ("no", "yes") else ", ".join(classes)


def pictures_in(folder: Path) -> list[Path]:
    """The pictures of a folder, enough of them to learn from."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder of examples.")
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if len(found) < FEWEST:
        raise DataError(
            f"{folder} holds {len(found)} pictures; {FEWEST} examples of a class are the fewest to learn from."
        )
    return found


def opened(path: Path) -> Pictures:
    """One picture as an array [1, H, W, 3]."""
    try:
        with Image.open(path) as picture:
            return np.array(picture.convert("RGB"))[None]
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} cannot be read as a picture ({error}).") from error
