"""Who is matched is worked out from the table by hand."""

from __future__ import annotations

from lace.bench.contest import Line
from lace.bench.frontier import matched


def line(sampler: str, strictness: float | None, a: float, b: float, distance: float, shares: str = "own") -> Line:
    return Line("glasses", shares, sampler, strictness, a, b, 0, 1, distance, None, None)


def test_matched_is_as_right_by_both_judges_and_as_near() -> None:
    lines = [
        line("exact 0", 0.0, 0.90, 0.90, 10),
        line("exact 0.5", 0.5, 0.95, 0.95, 12),
        line("exact 1", 1.0, 0.99, 0.94, 20),
        line("exact 1", 1.0, 1.00, 1.00, 1, "uniform"),
        line("ode", None, 0.95, 0.95, 12),
        line("pc", None, 0.90, 0.85, 30),
        line("euler", None, 0.99, 0.95, 50),
        line("smc", None, 0.50, 0.50, 50),
    ]
    table = matched(lines)
    assert [(row[2], row[-1]) for row in table.rows] == [("ode", "0.5"), ("pc", "0, 0.5, 1"), ("euler", "none")]
    assert "2 of 3" in table.title
