"""A mapping and its truncation in fewer calls: the same w."""

from __future__ import annotations

import pytest
import torch

from lace.generators.mapping import Folded, Mapping


@pytest.fixture(scope="module")
def z() -> torch.Tensor:
    """Rows of very different lengths: a mapping looks at directions alone."""
    z = torch.randn(50, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return z * torch.logspace(-2, 2, 50, dtype=torch.float64)[:, None]


def mapping_of(slope: float) -> tuple[Mapping, torch.Tensor]:
    """Four layers that neither fade nor grow, and a mean of w."""
    mapping, generator = Mapping([12, 20, 20, 16, 9], slope).requires_grad_(False), torch.Generator().manual_seed(2)
    for parameter in mapping.parameters():
        parameter.normal_(0, parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.5, generator=generator)
    return mapping, torch.randn(9, generator=generator)


@pytest.mark.parametrize("slope", [0.2, 0.01, 1.0])
@pytest.mark.parametrize("psi", [0.5, 0.7, 1.0])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float16, 1e-2)])
def test_folded_is_the_mapping_truncated(
    z: torch.Tensor, slope: float, psi: float, dtype: torch.dtype, error: float
) -> None:
    mapping, mean = mapping_of(slope)
    found = Folded(mapping, mean, psi, dtype)(z.float())
    assert found.dtype == dtype
    truth = mean.double() + psi * (mapping.double()(z) - mean.double())
    assert truth.abs().mean() > 0.3
    assert (found - truth).abs().max() < error * truth.abs().max()
