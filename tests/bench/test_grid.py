"""The paper's grids have the paper's sizes (section "Ablation study on the ODE and LD sampler")."""

from __future__ import annotations

from lace.bench.grid import langevins, odes


def test_as_many_settings_as_the_paper_tried() -> None:
    assert len({str(contender.wish["sampler"].settings) for contender in odes()}) == 81
    assert len({str(contender.wish["sampler"].settings) for contender in langevins()}) == 104
