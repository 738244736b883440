"""Noise by kernels is the noise of lace.rng, at every address."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lace import rng

noise = pytest.importorskip("lace.gpu.noise", reason="Triton is in the test extra for Linux: pip install 'lace[test]'")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LAST = (2**64 - 1, 2**63 - 1, 2**32 - 1)


def there(index: list[int] | torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(index, device=DEVICE)


@settings(max_examples=40)
@given(
    seed=st.integers(0, LAST[0]),
    index=st.lists(st.integers(0, LAST[1]), min_size=1, max_size=5),
    dim=st.integers(1, 21),
    stream=st.integers(0, LAST[2]),
)
@example(seed=LAST[0], index=[LAST[1], 0, 2**32, 2**32 - 1], dim=7, stream=LAST[2])
@example(seed=2**63, index=[2**31], dim=1, stream=2**31)
@example(seed=2**32 - 1, index=[2**62], dim=4, stream=2**31 - 1)
@example(seed=0, index=[0], dim=3, stream=rng.SCOUT)
def test_every_address_has_the_same_noise(seed: int, index: list[int], dim: int, stream: int) -> None:
    rows = torch.tensor(index)
    assert torch.equal(noise.units(seed, there(index), dim, stream).cpu(), rng.uniforms(seed, rows, dim, stream))
    assert torch.allclose(
        noise.normals(seed, there(index), dim, stream).cpu(), rng.normal(seed, rows, dim, stream), rtol=0, atol=2e-6
    )


@pytest.mark.parametrize(("rows", "dim"), [(noise.BLOCK // 2, 8), (noise.BLOCK // 2 + 1, 8), (3, 4 * noise.BLOCK + 6)])
def test_edges_of_blocks(rows: int, dim: int) -> None:
    """As many words as one program makes, one row more, and rows that several programs share."""
    index = torch.arange(rows).flip(0) + 5
    found = noise.normals(11, there(index), dim, rng.WALK)
    assert found.shape == (rows, dim)
    assert torch.allclose(found.cpu(), rng.normal(11, index, dim, rng.WALK), rtol=0, atol=2e-6)


def test_indices_need_not_lie_side_by_side() -> None:
    index = torch.arange(40)[::3]
    assert torch.equal(noise.units(2, there(index), 5, 1).cpu(), rng.uniforms(2, index, 5, 1))


def test_nobody_gets_nothing() -> None:
    assert noise.normals(0, there(torch.empty(0, dtype=torch.long)), 6, 0).shape == (0, 6)
