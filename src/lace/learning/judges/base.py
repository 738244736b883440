"""What labelling asks of a judge: answers for pictures, and a name for its journal."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Judge", "resized"]

Pictures = NDArray[np.uint8]


class Judge(abc.ABC):
    """Looks at pictures, uint8 [N, H, W, 3], and gives one answer for each (see :mod:`lace.learning.answers`).

    ``about`` says in JSON who judges: labels of judges that differ in it are never mixed.
    """

    about: dict[str, Any]

    @abc.abstractmethod
    def __call__(self, pictures: Pictures) -> Any:
        """The answers."""

    def notes(self) -> dict[str, Any]:
        """What there is to say after all pictures were seen."""
        return {}


def resized(pictures: Pictures, height: int, width: int, device: torch.device | str = "cpu") -> Tensor:
    """Pictures as a tensor [N, 3, height, width] in 0..255."""
    x = torch.tensor(pictures, device=device).permute(0, 3, 1, 2).float()
    if x.shape[-2:] == (height, width):
        return x
    return F.interpolate(x, size=(height, width), mode="bilinear", antialias=True).clamp(0, 255)
