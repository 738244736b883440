"""CUDA graphs: what a GPU is asked again and again is recorded once, and then replayed by one call.

A few latents pass through a mapping, heads and a formula in some hundred small operations; launched one by one they
take longer to name than to do. A recording holds them all, for one number of rows: rows are padded to a power of two,
so that few recordings serve every number. It reads from and writes to memory of its own; what comes out is a copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["Recorded"]

# With more rows than this the work itself takes longer than its launches.
MOST = 2**13
# Recordings share the memory between their ends, so they are made and replayed one at a time.
TURN = threading.Lock()

Rows = Callable[..., tuple[Tensor, ...]]
# How many rows, and the shape of a row of each input.
Shapes = tuple[int | torch.Size, ...]


class Recorded:
    """A function of tensors with N rows each, row by row; on a GPU its second call of a size is recorded.

    With more rows than ``most`` it is called as it is.
    """

    def __init__(self, function: Rows, most: int = MOST, is_padded: bool = True) -> None:
        self._function, self._most, self._is_padded = function, most, is_padded
        self._asked: set[Shapes] = set()
        self._tapes: dict[Shapes, Tape] = {}

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        rows = len(inputs[0])
        if not inputs[0].is_cuda or not 0 < rows <= self._most or torch.cuda.is_current_stream_capturing():
            return self._function(*inputs)
        size = 1 << (rows - 1).bit_length() if self._is_padded else rows
        shapes: Shapes = (size, *(x.shape[1:] for x in inputs))
        if shapes not in self._asked:
            # Much is asked only once; besides, libraries set themselves up in a first call that cannot be recorded.
            self._asked.add(shapes)
            return self._function(*inputs)
        with TURN:
            if shapes not in self._tapes:
                self._tapes[shapes] = Tape(self._function, inputs, size)
            return self._tapes[shapes].play(*inputs)


class Tape:
    """One recording, of ``size`` rows."""

    _pool: tuple[int, int] | None = None

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, function: Rows, inputs: tuple[Tensor, ...], size: int) -> None:
        # Rows that nobody asks for are copies of the first: an index stays one that there is.
        self._inputs = tuple(x[:1].repeat(size, *[1] * (x.dim() - 1)).clone() for x in inputs)
        self._graph = torch.cuda.CUDAGraph()
        self._warm(function)
        with torch.cuda.graph(self._graph, pool=Tape._pool, capture_error_mode="thread_local"):
            self._outputs = function(*self._inputs)
        Tape._pool = self._graph.pool()

    def _warm(self, function: Rows) -> None:
        """One run beside the others, as recordings want it."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            function(*self._inputs)
        torch.cuda.current_stream().wait_stream(side)

    def play(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The function's results for these rows."""
        rows = len(inputs[0])
        for own, new in zip(self._inputs, inputs, strict=True):
            own[:rows].copy_(new)
        self._graph.replay()
        return tuple(own[:rows].clone() for own in self._outputs)
