"""Any callable as a generator: x = fn(z), with w = z unless a second callable gives it."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from .base import Generator

__all__ = ["FunctionGenerator"]


class FunctionGenerator(Generator):
    """Wrap ``fn``, which turns latents [N, latent_dim] into pictures [N, 3, H, W] in [-1, 1].

    ``to_w`` may give a representation between the two, on which attributes are read; without it they are read on z.
    ``identity`` names the function for caches: give a new one whenever what it computes changes.
    """

    def __init__(
        self,
        fn: Callable[[Tensor], Tensor],
        latent_dim: int,
        to_w: Callable[[Tensor], Tensor] | None = None,
        identity: str = "",
    ) -> None:
        super().__init__()
        self.latent_dim = latent_dim
        self.identity = identity
        self._fn = fn
        self._to_w = to_w

    def to_w(self, z: Tensor) -> Tensor:
        return z if self._to_w is None else self._to_w(z)

    def to_picture(self, w: Tensor) -> Tensor:
        return self._fn(w)
