"""Light fitted to a rendered half sphere, whose light is known; and angles of known rotations."""

from __future__ import annotations

import numpy as np
import pytest

from lace.attributes.annotators.landmarks import euler_degrees
from lace.attributes.annotators.lighting import SKIN, fit, harmonics, lighting, normals

SIZE, CENTRE, RADIUS = 256, 127.5, 100.0


def half_sphere() -> tuple[np.ndarray, np.ndarray]:
    """468 points on the half of a sphere that faces the viewer, in image coordinates, and triangles between them."""
    rings, around = 18, 26
    theta = np.linspace(0.06, 1.25, rings)[:, None]
    phi = np.linspace(0, 2 * np.pi, around, endpoint=False)[None, :]
    x, y, z = np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta) + 0 * phi
    points = np.stack([CENTRE + RADIUS * x, CENTRE - RADIUS * y, -RADIUS * z], axis=-1).reshape(-1, 3)
    k = np.arange(rings * around).reshape(rings, around)
    a, b, c, d = k[:-1], np.roll(k[:-1], -1, 1), k[1:], np.roll(k[1:], -1, 1)
    return points, np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([b, d, c], -1).reshape(-1, 3)])


def rendered(light: np.ndarray) -> np.ndarray:
    """The sphere under nine coefficients of light, as a picture."""
    rows, columns = np.mgrid[:SIZE, :SIZE]
    x, y = (columns - CENTRE) / RADIUS, (CENTRE - rows) / RADIUS
    z = np.sqrt(np.clip(1 - x * x - y * y, 0, 1))
    luminance = harmonics(np.stack([x, y, z], -1).reshape(-1, 3)) @ light
    grey = np.clip(luminance.reshape(SIZE, SIZE) * 255, 0, 255).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)


def test_normals_of_a_sphere_point_outwards() -> None:
    points, mesh = half_sphere()
    truth = (points - [CENTRE, CENTRE, 0]) / RADIUS * [1, -1, -1]
    inner = slice(26, -26)
    assert np.abs(normals(points, mesh) - truth)[inner].max() < 0.08


@pytest.mark.parametrize("side", [-0.2, 0.0, 0.25])
def test_known_light_is_found(side: float) -> None:
    points, mesh = half_sphere()
    light = np.array([0.5, 0.1, 0, side, 0, 0, 0, 0, 0])
    found = lighting(rendered(light), points, mesh)
    assert found[0] == pytest.approx(0.5, abs=0.03)
    assert found[1] == pytest.approx(0.1, abs=0.03)
    assert found[3] == pytest.approx(side, abs=0.03)


def test_a_mirrored_picture_has_mirrored_light() -> None:
    points, mesh = half_sphere()
    picture = rendered(np.array([0.5, 0.05, 0, 0.2, 0, 0, 0, 0.05, 0]))
    right, left = lighting(picture, points, mesh), lighting(picture[:, ::-1], points, mesh)
    assert left[3] == pytest.approx(-right[3], abs=0.02)
    assert left[0] == pytest.approx(right[0], abs=0.02)


def test_fit_is_least_squares_where_it_can_see_all() -> None:
    """On the whole sphere the basis is nearly orthogonal, and the ridge shrinks no coefficient by more than a third."""
    rng = np.random.default_rng(0)
    n = rng.normal(size=(5000, 3))
    basis = harmonics(n / np.linalg.norm(n, axis=1, keepdims=True))
    assert fit(basis, basis @ np.array([0.4, 0, 0, 0.2, 0, 0, 0, 0, 0]))[0] == pytest.approx(0.4, abs=0.01)


def test_skin_leaves_out_eyes_brows_and_lips() -> None:
    assert len(SKIN) == 468 - 92
    assert not set(SKIN) & {0, 13, 33, 263, 105, 334}


def turned(yaw: float, pitch: float) -> np.ndarray:
    """A head turned to the viewer's right by yaw, then up by pitch (x right, y up, z to the viewer)."""
    a, b = np.radians([yaw, pitch])
    about_y = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    about_x = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    return about_x.T @ about_y


@pytest.mark.parametrize(("yaw", "pitch"), [(0, 0), (30, 0), (-45, 0), (0, 20), (0, -15), (25, 10)])
def test_angles(yaw: float, pitch: float) -> None:
    found = euler_degrees(turned(yaw, pitch))
    assert found[:2] == pytest.approx((yaw, pitch), abs=1e-6)
