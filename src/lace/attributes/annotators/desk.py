"""The judges that run on a CPU, the landmarker and age-v1, in processes of their own or a thread, beside a GPU."""

from __future__ import annotations

import multiprocessing
from collections.abc import Collection
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.util import Finalize
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from .age import AgeV1
from .landmarks import Landmarker

__all__ = ["ON_CPU", "CpuDesk", "CpuJudges"]

ON_CPU = frozenset({"landmarks", "age_v1"})
# What they look at.
PIXELS = 384

Array = NDArray[Any]


class CpuJudges:
    """The landmarker and age-v1, each made when first asked."""

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads
        self._landmarker: Landmarker | None = None
        self._age: AgeV1 | None = None

    def __call__(self, pictures: NDArray[np.uint8], wanted: Collection[str]) -> dict[str, Array]:
        """The answers of those wanted on pictures [N, H, W, 3]."""
        said = {}
        if "landmarks" in wanted:
            self._landmarker = self._landmarker or Landmarker(self._threads or None)
            said["landmarks"] = self._landmarker(pictures)
        if "age_v1" in wanted:
            self._age = self._age or AgeV1(self._threads)
            faces = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
            said["age_v1"] = self._age(faces).numpy()
        return said

    def close(self) -> None:
        """MediaPipe must be closed before the interpreter stops its threads."""
        if self._landmarker:
            self._landmarker.close()


_worker: CpuJudges


def _start_worker() -> None:
    """Each process has judges of its own, on one core."""
    global _worker
    torch.set_num_threads(1)
    _worker = CpuJudges(threads=1)
    Finalize(None, _worker.close, exitpriority=1)


def _in_worker(pictures: NDArray[np.uint8], wanted: Collection[str]) -> dict[str, Array]:
    return _worker(pictures, wanted)


class CpuDesk:
    """Judges that work on a CPU beside the GPU: in so many processes, or in a thread of this one."""

    def __init__(self, workers: int = 0) -> None:
        self._own, self._pool = CpuJudges(), self._hired(workers)
        self._ask = _in_worker if workers else self._own

    @staticmethod
    def _hired(workers: int) -> Executor:
        if not workers:
            return ThreadPoolExecutor(1)
        return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker)

    def submit(self, faces: Tensor, wanted: Collection[str] = ON_CPU) -> Future[dict[str, Array]]:
        """What they will say of faces [N, 3, S, S] in [-1, 1]."""
        small = F.interpolate(faces, size=(PIXELS, PIXELS), mode="bilinear", antialias=True)
        pictures = (small * 127.5 + 127.5).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
        return self._pool.submit(self._ask, pictures, wanted)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._own.close()
