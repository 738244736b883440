"""StyleGAN2 and StyleGAN2-ADA in plain PyTorch (Karras et al., arXiv:1912.04958 and 2006.06676).

    w         = mean + psi (mapping(z, c) - mean)
    layer:    y = act(d K * (s(w) x) + noise + bias),   d_o = 1 / |K_o s(w)|,   act = sqrt 2 leaky, clamped
    block:    x <- layer(layer(x, up)),   from a learned constant at 4x4 to the full size
    up:       zeros between pixels, the layer's kernel, then the filter [1 3 3 1] x [1 3 3 1] / 16
    skip:     picture <- up(picture) + rgb(x) after every block;   orig: only after the last
    resnet:   x <- (layers(x) + up(1x1 x)) / sqrt 2, and rgb after the last block

w is one row for all layers, or a row for each. The equalised gains of training are folded into the weights when they
are read (see :mod:`lace.weights.stylegan2`). Blocks that the config calls half run in half precision on a GPU, with
kernels and styles brought to a largest value of 1 before, which d undoes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import DataError, ValueRangeError
from .mapping import Mapping, StyleGenerator, activation_gain

__all__ = ["NOISES", "Config", "StyleGAN2"]

NOISES = ("fixed", "random", "none")
# Beyond these a file lies: 10 blocks draw 2048 pixels.
LARGEST, WIDEST, DEEPEST = 10, 4096, 32


@dataclass(frozen=True)
class Config:
    """What a StyleGAN2 is made of.

    ``channels`` are those of the blocks at 4, 8, ... pixels; ``mapping`` the widths from z to w. The ``half`` largest
    blocks run in half precision on a GPU. Slopes are those of the leaky ReLUs, 1 for none.
    """

    channels: tuple[int, ...]
    mapping: tuple[int, ...] = (512,) * 9
    classes: int = 0
    embedding: int = 0
    architecture: str = "skip"
    kernel: int = 3
    filter: tuple[float, ...] = (1.0, 3.0, 3.0, 1.0)
    slope: float = 0.2
    mapping_slope: float = 0.2
    clamp: float | None = None
    half: int = 0
    picture_channels: int = 3
    noise: bool = True

    def __post_init__(self) -> None:
        widths = (*self.channels, *self.mapping, self.embedding or 1, self.classes or 1)
        checks = {
            "channels": 1 <= len(self.channels) <= LARGEST,
            "widths": all(isinstance(width, int) and 1 <= width <= WIDEST for width in widths),
            "mapping": 2 <= len(self.mapping) <= DEEPEST + 1,
            "architecture": self.architecture in ("skip", "resnet", "orig"),
            "kernel": self.kernel in (1, 3, 5, 7),
            "filter": 1 <= len(self.filter) <= 64 and abs(sum(self.filter)) > 1e-6,
            "slopes": 0 <= self.slope <= 1 and 0 <= self.mapping_slope <= 1,
            "clamp": self.clamp is None or self.clamp > 0,
            "half": 0 <= self.half <= LARGEST,
            "picture_channels": self.picture_channels in (1, 3),
            "embedding": not self.classes or self.embedding > 0,
        }
        wrong = [name for name, holds in checks.items() if not holds]
        if wrong:
            raise DataError(f"This is no StyleGAN2 that LACE can draw with (its {' and '.join(wrong)} do not fit).")

    @classmethod
    def from_json(cls, row: Any) -> Config:
        """Read what JSON made of a config."""
        try:
            fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
            return cls(**fields)
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(f"This is no StyleGAN2's description ({error}).") from error

    @property
    def resolution(self) -> int:
        return int(2 ** (len(self.channels) + 1))

    @property
    def z_dim(self) -> int:
        return self.mapping[0]

    @property
    def w_dim(self) -> int:
        return self.mapping[-1]


class Filter(nn.Module):
    """The low-pass filter of all that doubles its size; its gain of 4 makes up for the zeros between pixels."""

    taps: Tensor

    def __init__(self, taps: tuple[float, ...]) -> None:
        super().__init__()
        gain = 4 / sum(taps) ** 2
        matrix = torch.tensor([[gain * a * b for b in taps] for a in taps])
        self.register_buffer("taps", matrix, persistent=False)

    def kernel(self, x: Tensor) -> Tensor:
        return self.taps.to(x.dtype).expand(x.shape[1], 1, -1, -1)

    def enlarge(self, x: Tensor) -> Tensor:
        """Pictures of twice the size: [N, C, H, W] -> [N, C, 2H, 2W]."""
        n = len(self.taps)
        before, after = (n + 1) // 2 - n + 1, (n - 2) // 2 - n + 2
        inside = -before if before == after <= 0 else 0
        y = F.conv_transpose2d(x, self.kernel(x), stride=2, padding=inside, groups=x.shape[1])
        return y if before == after <= 0 else F.pad(y, (before, after, before, after))

    def smooth(self, x: Tensor, kernel: int, bias: Tensor | None = None) -> Tensor:
        """The second half of doubling, after a transposed convolution of that kernel size and stride 2."""
        n = len(self.taps)
        before, after = kernel // 2 + (n + 1) // 2 - kernel + 1, kernel // 2 + (n - 2) // 2 - kernel + 2
        if before != after or before < 0:
            x, before = F.pad(x, (before, after, before, after)), 0
        return F.conv2d(x, self.kernel(x).flip(2, 3), bias, padding=before, groups=x.shape[1])


def squares(kernel: Tensor) -> Tensor:
    """The sum of squares over a kernel's places [out, in]."""
    return kernel.square().sum(dim=(2, 3))


class Layer(nn.Module):
    """A styled convolution: y = act(d K * (s(w) x) + noise + bias), at twice the size where ``filter`` is given."""

    noise: Tensor | None
    power: Tensor

    def __init__(
        self, inputs: int, outputs: int, size: int, config: Config, filter: Filter | None, gain: float
    ) -> None:
        super().__init__()
        self.style = nn.Linear(config.w_dim, inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs, config.kernel, config.kernel))
        self.bias = nn.Parameter(torch.empty(outputs))
        if config.noise:
            self.strength = nn.Parameter(torch.empty(()))
        self.register_buffer("noise", torch.empty(size, size) if config.noise else None)
        # The sum of squares of each kernel, all that d needs to know of it: worked out once, when weights are loaded.
        self.register_buffer("power", torch.empty(outputs, inputs), persistent=False)
        self.register_load_state_dict_post_hook(Layer.prepare)
        self.gain = gain * activation_gain(config.slope)
        self.clamp = None if config.clamp is None else gain * config.clamp
        self.slope = config.slope
        # A list, because the one filter belongs to the synthesis.
        self._filter = [filter]

    def prepare(self, _: object = None) -> None:
        self.power.copy_(squares(self.weight.detach()))

    def forward(self, x: Tensor, w: Tensor, noise: Tensor | None) -> Tensor:
        style, kernel, power = self.style(w), self.weight, self.power
        if kernel.requires_grad:
            power = squares(kernel)
        if x.dtype == torch.float16:
            balance = 1 / (kernel.abs().amax(dim=(1, 2, 3)) * kernel[0].numel() ** 0.5)
            kernel, power = kernel * balance[:, None, None, None], power * balance.square()[:, None]
            style = style / style.abs().amax(dim=1, keepdim=True)
        # Leaky ReLUs pass a gain through: it goes into all that is summed before them.
        scale = self.gain * (style.square() @ power.T + 1e-8).rsqrt()
        y = self.convolve(x, kernel, style, scale, (self.gain * self.bias).to(x.dtype))
        if noise is not None:
            y = y.add_((self.gain * self.strength * noise).to(y.dtype))
        y = F.leaky_relu_(y, self.slope)
        return y if self.clamp is None else y.clamp_(-self.clamp, self.clamp)

    def convolve(self, x: Tensor, kernel: Tensor, style: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        """Style and scale go into what is smaller: the kernel, where there is one picture, or what it is applied to."""
        if len(x) == 1 and x.numel() > kernel.numel():
            kernel = kernel * style[0][:, None, None] * scale[0][:, None, None, None]
            return self.correlate(x, kernel.to(x.dtype), bias)
        y = self.correlate(x * style.to(x.dtype)[:, :, None, None], kernel.to(x.dtype), None)
        return torch.addcmul(bias[:, None, None], y, scale.to(x.dtype)[:, :, None, None])

    def correlate(self, x: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
        (filter,) = self._filter
        if filter is None:
            return F.conv2d(x, kernel, bias, padding=kernel.shape[-1] // 2)
        return filter.smooth(F.conv_transpose2d(x, kernel.transpose(0, 1), stride=2), kernel.shape[-1], bias)

    def noise_of(self, kind: str, n: int, generator: torch.Generator | None) -> Tensor | None:
        """The noise map before its strength: the fixed one, a fresh one for each picture, or none."""
        if kind == "random" and self.noise is not None:
            shape = (n, 1, *self.noise.shape)
            return torch.randn(shape, generator=generator, device=self.noise.device, dtype=self.noise.dtype)
        return self.noise if kind == "fixed" else None


class Rgb(nn.Module):
    """What a block adds to the picture: a styled 1x1 convolution without demodulation."""

    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__()
        self.style = nn.Linear(config.w_dim, inputs)
        self.weight = nn.Parameter(torch.empty(config.picture_channels, inputs))
        self.bias = nn.Parameter(torch.empty(config.picture_channels))
        self.clamp = config.clamp

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        weight = self.weight * self.style(w)[:, None]
        # As a matrix product over channels, which lie last in memory.
        y = torch.baddbmm(self.bias.to(x.dtype), x.permute(0, 2, 3, 1).flatten(1, 2), weight.to(x.dtype).mT)
        y = y.unflatten(1, x.shape[2:]).permute(0, 3, 1, 2)
        return y if self.clamp is None else y.clamp(-self.clamp, self.clamp)


class Block(nn.Module):
    """Two layers, the first of which doubles the size; the very first block has only one. ``w`` has three rows."""

    def __init__(self, k: int, config: Config, filter: Filter) -> None:
        super().__init__()
        inputs, outputs, size = config.channels[max(k - 1, 0)], config.channels[k], 4 * 2**k
        residual = config.architecture == "resnet" and k > 0
        last = k == len(config.channels) - 1
        self.up = Layer(inputs, outputs, size, config, filter, 1.0) if k else None
        self.conv = Layer(outputs, outputs, size, config, None, 0.5**0.5 if residual else 1.0)
        self.skip = nn.Conv2d(inputs, outputs, 1, bias=False) if residual else None
        self.rgb = Rgb(outputs, config) if last or config.architecture == "skip" else None
        self.in_half = k >= max(len(config.channels) - config.half, 1)
        self._filter = [filter]

    def forward(
        self, x: Tensor, picture: Tensor | None, w: Tensor, noises: Iterator[Tensor | None]
    ) -> tuple[Tensor, Tensor | None]:
        (filter,) = self._filter
        x = x.to(torch.float16 if self.in_half and x.is_cuda else w.dtype)
        y = x if self.up is None else self.up(x, w[:, 0], next(noises))
        y = self.conv(y, w[:, 1], next(noises))
        if self.skip is not None:
            y = y + filter.enlarge(F.conv2d(x, self.skip.weight.to(x.dtype)))
        picture = None if picture is None else filter.enlarge(picture)
        if self.rgb is not None:
            rgb = self.rgb(y, w[:, 2]).to(w.dtype)
            picture = rgb if picture is None else picture + rgb
        return y, picture


class Synthesis(nn.Module):
    """w -> x; w is [N, w_dim], or [N, rows, w_dim] with one row for each layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.filter = Filter(config.filter)
        self.constant = nn.Parameter(torch.empty(1, config.channels[0], 4, 4))
        self.blocks = nn.ModuleList(Block(k, config, self.filter) for k in range(len(config.channels)))

    @property
    def rows(self) -> int:
        return 2 * len(self.blocks)

    def forward(self, w: Tensor, noise: str = "fixed", generator: torch.Generator | None = None) -> Tensor:
        if w.dim() == 2:
            w = w[:, None].expand(-1, self.rows, -1)
        layers = (layer for layer in self.modules() if isinstance(layer, Layer))
        noises = (layer.noise_of(noise, len(w), generator) for layer in layers)
        x = self.constant.expand(len(w), -1, -1, -1).contiguous(memory_format=torch.channels_last)
        picture = None
        for k, block in enumerate(self.blocks):
            # The picture of a block shares its row of w with the first layer of the next.
            x, picture = block(x, picture, w[:, max(2 * k - 1, 0) :] if k else w[:, [0, 0, 1]], noises)
        assert picture is not None
        return picture.expand(-1, 3, -1, -1)


class StyleGAN2(StyleGenerator):
    """Pictures by a StyleGAN2 of any size.

    Of a conditional one ``label`` fixes the class. Without it the class is drawn as well, evenly: z has a further
    number for each class, and the largest of them says which.
    """

    synthesis: Synthesis

    def __init__(self, config: Config, psi: float = 1.0, identity: str = "", label: int | None = None) -> None:
        super().__init__(config.w_dim, psi, identity)
        if label is not None and not 0 <= label < config.classes:
            known = f"0 to {config.classes - 1}" if config.classes else "none"
            raise ValueRangeError(f"This generator's classes are {known}; there is no class {label}.")
        self.config = config
        self.label = label
        self.latent_dim = config.z_dim + (config.classes if label is None else 0)
        self.mapping = Mapping(config.mapping, config.mapping_slope, config.classes, config.embedding)
        self.synthesis = Synthesis(config)
        self.style_layers = tuple(range(self.synthesis.rows))
        self.requires_grad_(False).eval()

    @property
    def identity(self) -> str:  # type: ignore[override]
        return super().identity + ("" if self.label is None else f"-class{self.label}")

    def to_picture(self, w: Tensor, noise: str = "fixed", generator: torch.Generator | None = None) -> Tensor:
        """Pictures of w [N, w_dim], or of one row a layer [N, rows, w_dim].

        ``noise`` is fixed (a picture is a function of w), random, out of ``generator``, or none.
        """
        if noise not in NOISES:
            raise ValueRangeError(f"Noise is {', '.join(NOISES)}, not '{noise}'.")
        if noise == "random" and generator is None:
            raise ValueRangeError("Random noise comes out of a torch.Generator; give one.")
        return self.draw(w, noise=noise, generator=generator)

    def map(self, z: Tensor) -> Tensor:
        if not self.config.classes:
            return self.mapping(z)
        z, scores = z[:, : self.config.z_dim], z[:, self.config.z_dim :]
        chosen = scores.argmax(dim=1) if self.label is None else torch.full((len(z),), self.label, device=z.device)
        return self.mapping(z, F.one_hot(chosen, self.config.classes).to(z.dtype))
