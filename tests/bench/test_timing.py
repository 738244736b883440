"""Medians on a clock of our own; costs of operations whose counts are known."""

from __future__ import annotations

import time

import pytest
import torch

from lace.bench.timing import Cost, Peak, cost, median_seconds

CPU = torch.device("cpu")


class Clock:
    """A clock that only work moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *lengths: float) -> None:
        self.now, self.runs, self.lengths = 0.0, 0, lengths
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def work(self) -> None:
        self.now += self.lengths[min(self.runs, len(self.lengths) - 1)]
        self.runs += 1


def test_the_median_leaves_the_first_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 9, 8, 7, 1, 2, 3, 4, 5)
    assert median_seconds(clock.work, CPU, repeats=5, budget=1000) == 3
    assert clock.runs == 8


def test_slow_work_ends_with_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run of five seconds to warm up, then two within a budget of six; the last one counts."""
    clock = Clock(monkeypatch, 5.0, 4.0, 3.0)
    assert median_seconds(clock.work, CPU, repeats=50, budget=6) == 3.0
    assert clock.runs == 3


def test_the_cost_of_a_matrix_product() -> None:
    a, b = torch.rand(3, 5), torch.rand(5, 7)
    found = cost(lambda: a @ b + 1)
    assert found == Cost(2 * 3 * 5 * 7, 4 * (3 * 5 + 5 * 7 + 3 * 7))


def test_the_floor_is_the_slower_of_two() -> None:
    peak = Peak(operations=100.0, moved=10.0)
    assert peak.floor(Cost(500, 10)) == 5.0
    assert peak.floor(Cost(500, 80)) == 8.0
