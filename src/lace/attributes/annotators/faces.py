"""A panel of judges that reads all attributes of the face model from pictures, as its labels were made.

:mod:`.voices` says which judge speaks for which word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from types import TracebackType

import torch
from torch import Tensor

from ..schema import Attribute, Discrete, Schema
from .age import FaceRes
from .desk import ON_CPU, CpuDesk
from .judge import Judge, eight_bit
from .landmarks import COLUMNS
from .voices import LABELLER, Answers, classes, number, voices

__all__ = ["FacePanel"]

# Batches that may wait for the judges on a CPU.
QUEUE = 64


class FacePanel:
    """Judges that read faces as labels are: as the labeller, or as the independent judge.

    With ``workers``, those that run on a CPU do so in processes of their own. Close it, or use it in a ``with``.
    """

    def __init__(self, judge: Judge, schema: Schema, name: str = LABELLER, workers: int = 0) -> None:
        self.judge, self.schema, self.name = judge, schema, name
        self._faceres: FaceRes | None = None
        self._desk = CpuDesk(workers)

    @classmethod
    def load(
        cls, folder: Path, schema: Schema, device: torch.device, name: str = LABELLER, workers: int = 0
    ) -> FacePanel:
        """The panel of ``labeller`` or ``independent``, whose network lies in a folder."""
        return cls(Judge.load(folder / f"{name}.safetensors").to(device), schema, name, workers)

    def __call__(self, faces: Tensor, names: Collection[str] | None = None) -> Tensor:
        """Labels [N, columns] of faces [N, 3, S, S] in [-1, 1], seen as a PNG would hold them; NaN for what is unknown.

        With ``names``, only these attributes are read, by the judges that they need.
        """
        return self.read([faces], names)

    @torch.inference_mode()
    def read(self, batches: Iterable[Tensor], names: Collection[str] | None = None) -> Tensor:
        """The same for batches, which are forgotten one by one; in memory of the CPU."""
        attributes = [self.schema[name] for name in names] if names is not None else list(self.schema)
        wanted = frozenset(voice for attribute in attributes for voice in voices(attribute, self.name))
        said, waiting, count = [], [], 0
        for faces in batches:
            seen = eight_bit(faces)
            count += len(seen)
            said.append(self._on_device(seen, wanted))
            if wanted & ON_CPU:
                waiting.append(self._desk.submit(seen, wanted & ON_CPU))
            if len(waiting) > QUEUE:
                waiting[-QUEUE].result()
        for answers, future in zip(said, waiting, strict=bool(waiting)):
            answers |= {name: torch.from_numpy(value) for name, value in future.result().items()}
        rows = torch.full((count, self.schema.columns), torch.nan)
        if wanted and count:
            tensors = {name: torch.cat([part[name] for part in said]) for name in said[0]}
            self._write(rows, Answers(tensors, self.judge.names, COLUMNS), attributes)
        return rows

    def close(self) -> None:
        self._desk.close()

    def __enter__(self) -> FacePanel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _on_device(self, faces: Tensor, wanted: frozenset[str]) -> dict[str, Tensor]:
        said = {}
        if self.name in wanted:
            said[self.name] = self.judge.probabilities(faces).cpu()
        if "faceres" in wanted:
            self._faceres = self._faceres or FaceRes().to(faces.device)
            years, male = self._faceres(faces)
            said |= {"faceres_age": years.cpu(), "faceres_male": male.cpu()}
        return said

    def _write(self, rows: Tensor, answers: Answers, attributes: Iterable[Attribute]) -> None:
        """Fill in the attributes that somebody has answered."""
        for attribute in attributes:
            columns = self.schema.slice(attribute.name)
            if isinstance(attribute, Discrete):
                rows[:, columns] = classes(answers, attribute, self.name)
            elif voices(attribute, self.name):
                value = number(answers, attribute.name, self.name)
                rows[:, columns.start] = (value - attribute.low) / attribute.span
