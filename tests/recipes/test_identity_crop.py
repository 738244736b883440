"""The square that ArcFace looks at, found again from points that were put into one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

RECIPE = Path(__file__).parents[2] / "recipes" / "ffhq"


def test_the_square_of_points_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scatter that sums to nothing over the faces, and is no scaling of the template, changes nothing."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(RECIPE)])
    from identity_crop import TEMPLATE, square

    points = np.array([0.2, 0.1]) + 0.6 * TEMPLATE / 112
    scatter = 0.02 * np.random.default_rng(0).standard_normal((7, 5, 2))
    scattered = np.concatenate([points + scatter, points - scatter])
    assert square(scattered) == pytest.approx((0.2, 0.1, 0.6), abs=1e-12)
