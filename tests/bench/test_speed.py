"""The bench times what it says: one network out of the ensemble, and the same energy in each arrangement."""

from __future__ import annotations

import torch

import lace
from lace.bench.speed import arrangements, member


def test_a_member_is_one_network_of_the_ensemble(ffhq: lace.Model) -> None:
    assert isinstance(ffhq.heads, lace.MlpHeads)
    w = ffhq.at(["0:0", "0:1"]).w
    alone = torch.cat([member(ffhq.heads, k).logits(w) for k in range(len(ffhq.heads.speakers))])
    assert torch.allclose(alone, ffhq.heads.logits(w), atol=1e-4)


def test_arrangements_agree(ffhq: lace.Model) -> None:
    """Separate and single are one energy worked out twice; the ensemble's is another, of the same words."""
    z = ffhq.generator.prior(5, torch.arange(64))
    targets = arrangements(ffhq, ("glasses", "age=55"))
    separate, single, ensemble = (targets[name].log_prob(z) for name in ("separate", "single", "ensemble"))
    assert torch.allclose(separate, single, rtol=1e-4, atol=1e-4)
    assert torch.allclose(ensemble, -ffhq_energy(ffhq, z), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(ensemble, single, rtol=1e-2)


def ffhq_energy(ffhq: lace.Model, z: torch.Tensor) -> torch.Tensor:
    readings = ffhq.read(z)
    glasses = readings[:, ffhq.schema.slice("glasses")][:, 1]
    age = ffhq.schema["age"]
    assert isinstance(age, lace.Continuous)
    # The paper's sigma is 0.1 of the range of 80 years.
    return -glasses + ((ffhq.schema.natural(readings, age) - 55) / 8).square() / 2
