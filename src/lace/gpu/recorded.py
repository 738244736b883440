"""CUDA graphs: what a GPU is asked again and again is recorded once, and then replayed by one call.

A few latents pass through a mapping, heads and a formula in some hundred small operations; launched one by one they
take longer to name than to do. A recording holds them all, for one number of rows: rows are padded to a power of two,
so that few recordings serve every number. It reads from and writes to memory of its own; what comes out is a copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

__all__ = ["Recorded", "Tape"]

# With more rows than this the work itself takes longer than its launches.
MOST = 2**13
# Recordings share the memory between their ends, so they are made and replayed one at a time.
TURN = threading.Lock()

Result = TypeVar("Result")
Rows = Callable[..., tuple[Tensor, ...]]
# How many rows, and the shape of a row of each input.
Shapes = tuple[int | torch.Size, ...]


class Recorded:
    """A function of tensors with N rows each, row by row; on a GPU its second call of a size is recorded.

    With more rows than ``most`` it is called as it is.
    """

    _pool: Any = None

    def __init__(self, function: Rows, most: int = MOST, is_padded: bool = True) -> None:
        self._function, self._most, self._is_padded = function, most, is_padded
        self._asked: set[Shapes] = set()
        self._tapes: dict[Shapes, Tape[tuple[Tensor, ...]]] = {}

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
                self._tapes[shapes] = self._tape(inputs, size)
            return tuple(own[:rows].clone() for own in self._tapes[shapes].play(*inputs))

    @torch.inference_mode(False)
    @torch.no_grad()
    def _tape(self, inputs: tuple[Tensor, ...], size: int) -> Tape[tuple[Tensor, ...]]:
        # Rows that nobody asks for are copies of the first: an index stays one that there is.
        filled = tuple(x[:1].repeat(size, *[1] * (x.dim() - 1)) for x in inputs)
        tape = Tape(self._function, filled, pool=Recorded._pool)
        Recorded._pool = tape.graph.pool()
        return tape


class Tape(Generic[Result]):
    """One run of a function on ``inputs``, after ``trials`` that are not recorded: what it reads and writes stays."""

    def __init__(
        self,
        function: Callable[..., Result],
        inputs: tuple[Tensor, ...],
        trials: int = 1,
        pool: Any = None,
    ) -> None:
        self.graph, self._inputs, aside = torch.cuda.CUDAGraph(), inputs, torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(trials):
                function(*inputs)
        torch.cuda.current_stream().wait_stream(aside)
        with torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"):
            self._result = function(*inputs)

    def play(self, *values: Tensor) -> Result:
        """The function's result for these inputs, until the next one; of fewer rows, the first rows of it."""
        for own, new in zip(self._inputs, values, strict=True):
            own[: len(new)].copy_(new)
        self.graph.replay()
        return self._result
