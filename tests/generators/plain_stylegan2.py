"""StyleGAN2 from its definition, in double precision and NumPy: one picture at a time, nothing folded, nothing fused.

It works on raw weights under the names of stylegan2-ada-pytorch, with the gains of training applied in their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Plain:
    """Raw weights and the settings that they do not show."""

    state: dict[str, Any]
    taps: tuple[float, ...] = (1, 3, 3, 1)
    rate: float = 0.01
    clamp: float | None = None
    residual: bool = False

    def __getitem__(self, name: str) -> Array:
        return np.asarray(self.state[name], dtype=np.float64)

    def picture(self, z: Array, label: int = 0, psi: float = 1.0, noise: bool = True) -> Array:
        """The picture of one z."""
        return self.synthesis(np.stack([self.w(z, label, psi)] * 40), noise)

    def w(self, z: Array, label: int, psi: float) -> Array:
        x = unit(np.asarray(z, dtype=np.float64))
        if "mapping.embed.weight" in self.state:
            embed = self["mapping.embed.weight"]
            x = np.concatenate([x, unit(embed[:, label] / embed.shape[1] ** 0.5 + self["mapping.embed.bias"])])
        k = 0
        while f"mapping.fc{k}.weight" in self.state:
            weight = self[f"mapping.fc{k}.weight"]
            x = leaky(weight @ x * self.rate / weight.shape[1] ** 0.5 + self.rate * self[f"mapping.fc{k}.bias"])
            k += 1
        return self["mapping.w_avg"] + psi * (x - self["mapping.w_avg"])

    def synthesis(self, rows: Array, noise: bool) -> Array:
        x, picture, size, row = self["synthesis.b4.const"], None, 4, 0
        while f"synthesis.b{size}.conv1.weight" in self.state:
            block = f"synthesis.b{size}"
            gain = 0.5**0.5 if self.residual and size > 4 else 1.0
            before = x
            if size > 4:
                x = self.layer(f"{block}.conv0", x, rows[row], noise, 1.0, up=True)
                row += 1
            x = self.layer(f"{block}.conv1", x, rows[row], noise, gain, up=False)
            row += 1
            if f"{block}.skip.weight" in self.state:
                weight = self[f"{block}.skip.weight"]
                x = x + gain * self.enlarge(correlate(before, weight / weight.shape[1] ** 0.5))
            picture = None if picture is None else self.enlarge(picture)
            if f"{block}.torgb.weight" in self.state:
                added = self.rgb(f"{block}.torgb", x, rows[row])
                picture = added if picture is None else picture + added
            size *= 2
        assert picture is not None
        return picture

    def style(self, name: str, w: Array) -> Array:
        weight = self[f"{name}.affine.weight"]
        return weight @ w / weight.shape[1] ** 0.5 + self[f"{name}.affine.bias"]

    def layer(self, name: str, x: Array, w: Array, noise: bool, gain: float, up: bool) -> Array:
        kernel = self[f"{name}.weight"] * self.style(name, w)[None, :, None, None]
        kernel = kernel / np.sqrt((kernel**2).sum(axis=(1, 2, 3), keepdims=True) + 1e-8)
        x = self.doubled(x, kernel) if up else correlate(x, kernel)
        if noise and f"{name}.noise_const" in self.state:
            x = x + self[f"{name}.noise_const"] * self[f"{name}.noise_strength"]
        x = leaky(x + self[f"{name}.bias"][:, None, None]) * gain
        return x if self.clamp is None else x.clip(-self.clamp * gain, self.clamp * gain)

    def rgb(self, name: str, x: Array, w: Array) -> Array:
        weight = self[f"{name}.weight"]
        style = self.style(name, w) / weight.shape[1] ** 0.5
        y = correlate(x, weight * style[None, :, None, None]) + self[f"{name}.bias"][:, None, None]
        return y if self.clamp is None else y.clip(-self.clamp, self.clamp)

    def line(self) -> Array:
        taps = np.asarray(self.taps, dtype=np.float64)
        return 2 * taps / taps.sum()

    def enlarge(self, x: Array) -> Array:
        """Zeros between pixels, then the filter: a convolution, padded as upfirdn2d pads it."""
        n = len(self.taps)
        return fir(stuffed(x), self.line(), (n + 1) // 2, (n - 2) // 2)

    def doubled(self, x: Array, kernel: Array) -> Array:
        """Zeros between pixels, the kernel as a true convolution, then the filter; padding all at the beginning."""
        n, half = len(self.taps), kernel.shape[-1] // 2
        before, after = half + (n + 1) // 2, half + (n - 2) // 2
        y = fir(padded(stuffed(x), before, after), self.line(), 0, 0)
        return valid(y, kernel[:, :, ::-1, ::-1])


def unit(x: Array) -> Array:
    return x / np.sqrt((x**2).mean() + 1e-8)


def leaky(x: Array) -> Array:
    return np.where(x > 0, x, 0.2 * x) * 2**0.5


def stuffed(x: Array) -> Array:
    out = np.zeros((x.shape[0], 2 * x.shape[1], 2 * x.shape[2]))
    out[:, ::2, ::2] = x
    return out


def padded(x: Array, before: int, after: int) -> Array:
    """Zeros around; a negative number cuts."""
    x = np.pad(x, [(0, 0)] + [(max(before, 0), max(after, 0))] * 2)
    cut = slice(max(-before, 0), x.shape[1] - max(-after, 0))
    return x[:, cut, cut]


def fir(x: Array, line: Array, before: int, after: int) -> Array:
    """Both directions filtered by a true convolution with ``line``."""
    x, n = padded(x, before, after), len(line)
    size = x.shape[1] - n + 1
    rows = sum(line[n - 1 - k] * x[:, k : k + size, :] for k in range(n))
    return sum(line[n - 1 - k] * rows[:, :, k : k + size] for k in range(n))


def correlate(x: Array, kernel: Array) -> Array:
    return valid(padded(x, kernel.shape[-1] // 2, kernel.shape[-1] // 2), kernel)


def valid(x: Array, kernel: Array) -> Array:
    size, n = x.shape[1] - kernel.shape[-1] + 1, kernel.shape[-1]
    places = ((i, j) for i in range(n) for j in range(n))
    return sum(np.einsum("oi,ihw->ohw", kernel[:, :, i, j], x[:, i : i + size, j : j + size]) for i, j in places)
