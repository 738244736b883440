"""Recording a function changes nothing of what it computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lace.baselines.training import recorded, sound
from lace.errors import ValueRangeError


def cubes(x: Tensor, y: Tensor) -> Tensor:
    return x**3 - y


def test_on_a_cpu_it_is_the_function_itself() -> None:
    assert recorded(cubes, torch.ones(2), torch.ones(2)) is cubes


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_on_a_gpu_it_runs_again_on_other_tensors() -> None:
    """Gradients too: those of one run, not of all runs together."""
    weight = torch.tensor(2.0, device="cuda", requires_grad=True)

    def slope(x: Tensor) -> Tensor:
        weight.grad = None
        loss = (weight * x).square().sum()
        loss.backward()
        return loss.detach()

    run = recorded(slope, torch.zeros(3, device="cuda"))
    for x in (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 0.0, -1.0])):
        assert float(run(x.cuda())) == pytest.approx(4 * float(x.square().sum()))
        assert float(weight.grad) == pytest.approx(4 * float(x.square().sum()))


def test_a_training_that_has_run_away_is_stopped() -> None:
    assert sound(torch.tensor(3.0)) == 3
    with pytest.raises(ValueRangeError, match="smaller learning rate"):
        sound(torch.tensor(torch.inf))
