"""Light on a face, as nine spherical harmonic coefficients (Ramamoorthi and Hanrahan, 2001).

    luminance(n) = sum_k light_k Y_k(n),   Y = (1, y, z, x, xy, yz, 3z^2 - 1, xz, x^2 - y^2)

n are normals of the landmark mesh, x to the viewer's right, y up, z to the viewer; luminance in [0, 1] is read off the
picture there. light0 is how bright the face is on average, light3 how much brighter its right side (as we see it).
A face shows half a sphere only, where z and 3z^2 - 1 are nearly constant, so the fit is a ridge that leans to light0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["harmonics", "lighting", "normals"]

Array = NDArray[Any]

# Eyes, brows and lips are darker or redder than skin whatever the light.
UNEVEN = (
    *(0, 13, 14, 17, 37, 39, 40, 61, 78, 80, 81, 82, 84, 87, 88, 91, 95, 146, 178, 181, 185, 191, 267, 269, 270, 291),
    *(308, 310, 311, 312, 314, 317, 318, 321, 324, 375, 402, 405, 409, 415, 249, 263, 362, 373, 374, 380, 381, 382),
    *(384, 385, 386, 387, 388, 390, 398, 466, 7, 33, 133, 144, 145, 153, 154, 155, 157, 158, 159, 160, 161, 163, 173),
    *(246, 276, 282, 283, 285, 293, 295, 296, 300, 334, 336, 46, 52, 53, 55, 63, 65, 66, 70, 105, 107),
)
SKIN = np.setdiff1d(np.arange(468), UNEVEN)
# Only what faces us is seen: normals nearer than this to the line of sight.
FACING = 0.2
RIDGE = np.array([0.0, 0.01, 0.1, 0.01, 0.1, 0.1, 0.1, 0.1, 0.1])
LUMA = np.array([0.299, 0.587, 0.114]) / 255


def normals(points: Array, mesh: Array) -> Array:
    """Unit normals at the vertices of a mesh [V, 3], turned to the viewer; x right, y up, z to the viewer."""
    corners = points[mesh]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    faces = faces * np.where(faces[:, 2:] > 0, -1.0, 1.0)
    summed = np.zeros_like(points)
    for corner in range(3):
        np.add.at(summed, mesh[:, corner], faces)
    # From image coordinates (y down, z away) to the viewer's.
    unit = summed * np.array([1.0, -1.0, -1.0])
    return unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)


def harmonics(n: Array) -> Array:
    """The nine basis functions at unit normals [V, 3]."""
    x, y, z = n.T
    return np.stack([np.ones_like(x), y, z, x, x * y, y * z, 3 * z * z - 1, x * z, x * x - y * y], axis=1)


def lighting(picture: NDArray[np.uint8], points: Array, mesh: Array) -> list[float]:
    """The nine coefficients for one picture [H, W, 3] and its landmarks in pixels."""
    n = normals(points[:468], mesh[(mesh < 468).all(axis=1)])
    high, wide = picture.shape[:2]
    columns, rows = points[SKIN, 0].round().astype(int), points[SKIN, 1].round().astype(int)
    seen = (n[SKIN, 2] > FACING) & (columns >= 1) & (columns < wide - 1) & (rows >= 1) & (rows < high - 1)
    columns, rows, basis = columns[seen], rows[seen], harmonics(n[SKIN][seen])
    around = [picture[rows + i, columns + j] @ LUMA for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return fit(basis, np.mean(around, axis=0))


def fit(basis: Array, luminance: Array) -> list[float]:
    """Ridge regression of luminance on the basis."""
    gram = basis.T @ basis / max(len(basis), 1) + np.diag(RIDGE)
    return [
        float(value) for value in np.linalg.solve(gram + 1e-9 * np.eye(9), basis.T @ luminance / max(len(basis), 1))
    ]
