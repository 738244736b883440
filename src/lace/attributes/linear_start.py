"""Heads that begin as a ridge regression: with a few hundred labels a line is most of what can be known.

    B = argmin_B sum_i v_i |y_i - m - B x_i|^2 + lambda |B|^2,   x standardised, lambda = 0.6 a dimension

For a class the line is that of a linear discriminant: with the mean m_c its share, its logit is log m_c + B_c x / m_c.
A leaky ReLU of slope s passes a number on unharmed when it comes as a pair: leaky(u) - leaky(-u) = (1 + s) u. So two
units of each layer carry B x through the network, and the others start at random to learn what is left.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .heads import SLOPE, MlpHeads
from .schema import Discrete

__all__ = ["start_from_ridge"]

RIDGE = 0.6
# No class is taken to be rarer than this, or its few pictures would decide everything.
RAREST = 0.005


@torch.no_grad()
def start_from_ridge(heads: MlpHeads, x: Tensor, labels: Tensor, weights: Tensor) -> None:
    """Let every network begin as the regression of labels [N, columns] on standardised inputs [N, d]."""
    columns = [_regression(x, labels[:, k], weights) for k in range(labels.shape[1])]
    slopes, means = torch.stack([slope for slope, _ in columns], dim=1), torch.stack([mean for _, mean in columns])
    for attribute in heads.schema:
        if isinstance(attribute, Discrete):
            own = heads.schema.slice(attribute.name)
            share = means[own].clamp_min(RAREST)
            slopes[:, own] /= share
            means[own] = share.log()
    _carry(heads, slopes, means)


def _regression(x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    known = y.isfinite()
    x, y, v = x[known].double(), y[known].double(), weights[known].double()
    mean = (v * y).sum() / v.sum()
    gram = x.T @ (v[:, None] * x) + RIDGE * x.shape[1] * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    return torch.linalg.solve(gram, x.T @ (v * (y - mean))).float(), mean.float()


def _carry(heads: MlpHeads, slopes: Tensor, means: Tensor) -> None:
    """Write the lines into the first two units a column of every layer."""
    columns = slopes.shape[1]
    pair = torch.eye(columns, device=slopes.device).repeat_interleave(2, dim=1)
    pair[:, 1::2] *= -1
    joined, own = pair.T / (1 + SLOPE), slice(0, 2 * columns)
    for weight in heads.weights[:-1]:
        weight[:, :, own] = 0
        weight[:, own, :] = 0
    heads.weights[0][:, :, own] = slopes @ pair
    for weight in heads.weights[1:-1]:
        weight[:, own, own] = joined @ pair
    heads.weights[-1][:, own, :] = joined
    heads.biases[-1][:] = means
