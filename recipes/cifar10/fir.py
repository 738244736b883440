"""StyleGAN2's low-pass filter [1 3 3 1] as sums of shifted pictures, which a compiler melts into what is around them.

    smoothed:  y[i]  = sum_k t_k x[i + k - padding],   t = [1 3 3 1] / 8,   in both directions
    doubled:   y[2i] = (x[i - 1] + 3 x[i]) / 4,   y[2i + 1] = (3 x[i] + x[i + 1]) / 4

The second is the first, applied with a gain of 4 to pictures with zeros between their pixels. As a depthwise
convolution the filter takes more time than all else in training.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["doubled", "smoothed"]

TAPS = (0.125, 0.375, 0.375, 0.125)


def smoothed(x: Tensor, padding: int, gain: float = 1.0, step: int = 1) -> Tensor:
    """Pictures [N, C, H, W] filtered, of which every ``step``-th pixel is kept."""
    x = F.pad(x, [padding] * 4)
    taps = [gain**0.5 * tap for tap in TAPS]
    for dim in (2, 3):
        # The last place from which all taps are inside.
        end = x.shape[dim] - len(TAPS) + 1
        shifted = [tap * x.narrow(dim, k, end) for k, tap in enumerate(taps)]
        x = (shifted[0] + shifted[1] + shifted[2] + shifted[3])[(slice(None),) * dim + (slice(None, None, step),)]
    return x


def doubled(x: Tensor) -> Tensor:
    """Pictures [N, C, H, W] at twice the size."""
    for dim in (2, 3):
        n = x.shape[dim]
        wide = F.pad(x, (0, 0, 1, 1) if dim == 2 else (1, 1))
        before, after = wide.narrow(dim, 0, n), wide.narrow(dim, 2, n)
        x = torch.stack([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after], dim=dim + 1).flatten(dim, dim + 1)
    return x
