"""Where pictures go: one file, a contact sheet, or a folder with ``run.json`` and the latents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm

from .drawing import Drawing
from .errors import AddressError, OutputError, ValueRangeError
from .files import writable_folder, written_whole
from .sheet import checked_picture_path, contact_sheet, save_picture

__all__ = ["Destination", "Run"]

# More faces than this are no page for people.
SHEET_LIMIT = 1000
RUN, LATENTS = "run.json", "latents.safetensors"


@dataclass(frozen=True)
class Destination:
    """A picture file, or a folder for one file a picture; tried before any work is done."""

    path: Path
    is_folder: bool

    @classmethod
    def checked(cls, out: Path | None, folder: Path | None, default: str) -> Destination:
        """From the options --out and --dir."""
        if folder is None:
            path = checked_picture_path(out or Path(default))
            writable_folder(path.parent)
            return cls(path, False)
        if out is not None:
            raise OutputError("Give --out for one picture file or --dir for a folder, not both.")
        if (folder / RUN).exists():
            raise OutputError(f"{folder} already holds a run; choose another folder, or delete it.")
        return cls(writable_folder(folder), True)

    def check_count(self, n: int) -> None:
        """Refuse to put a crowd on one page."""
        if n > SHEET_LIMIT and not self.is_folder:
            raise ValueRangeError(
                f"{n} pictures do not fit on one sheet of at most {SHEET_LIMIT}; give a folder with --dir."
            )

    def write(
        self,
        pictures: Iterator[NDArray[np.uint8]],
        captions: Sequence[str],
        about: dict[str, str],
        title: str = "",
        subtitle: str = "",
        columns: int | None = None,
    ) -> list[Path]:
        """Write the pictures as they come, or one without title as it is; returns the files."""
        counted = tqdm(pictures, desc="Drawing pictures", total=len(captions), unit="", disable=None, leave=False)
        if self.is_folder:
            return [self._write_one(k, picture, captions[k], about) for k, picture in enumerate(counted)]
        images = list(counted)
        alone = len(images) == 1 and not title
        page = Image.fromarray(images[0]) if alone else contact_sheet(images, captions, title, subtitle, columns)
        save_picture(page, self.path, {**about, "address": " ".join(captions)})
        return [self.path]

    def _write_one(self, k: int, picture: NDArray[np.uint8], caption: str, about: dict[str, str]) -> Path:
        safe = "".join(letter if letter.isalnum() else "-" for letter in Path(caption).name)
        path = self.path / f"{k:06d}_{safe}.png"
        save_picture(Image.fromarray(picture), path, {**about, "address": caption})
        return path

    def write_run(self, drawing: Drawing, report: dict[str, Any]) -> None:
        """Beside the pictures: the latents, and last of all what was done."""
        latents = {"z": drawing.z, "w": drawing.w} if drawing.is_edited else {"z": drawing.z}
        with written_whole(self.path / LATENTS) as beside:
            save_file({name: rows.cpu().contiguous() for name, rows in latents.items()}, beside)
        with written_whole(self.path / RUN) as beside:
            beside.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Run:
    """A folder that ``--dir`` wrote, asked for single latents as DIR#k."""

    folder: Path

    @classmethod
    def of(cls, place: str) -> tuple[Run, int]:
        """The folder and the number of DIR#k."""
        folder, _, number = place.rpartition("#")
        if not number.isascii() or not number.isdigit():
            raise AddressError(f"'{place}' names no picture of a folder; write DIR#3 for its fourth.")
        return cls(Path(folder)), int(number)

    def report(self) -> dict[str, Any]:
        """What ``run.json`` says."""
        try:
            report = json.loads((self.folder / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise AddressError(
                f"{self.folder} holds no readable {RUN}; only folders written by --dir can be shown."
            ) from error
        fits = isinstance(report, dict) and isinstance(report.get("model", ""), str)
        if not fits or not isinstance(report.get("psi"), float | int | None):
            raise AddressError(f"{self.folder / RUN} is not what --dir writes.")
        return report

    def latent(self, k: int) -> tuple[Tensor, Tensor | None]:
        """z of the k-th picture [1, latent_dim], and its w where an edit changed it."""
        try:
            latents = load_file(self.folder / LATENTS)
            z, w = latents["z"], latents.get("w")
        except Exception as error:
            raise AddressError(
                f"{self.folder} holds no readable {LATENTS}; only folders written by --dir can be shown."
            ) from error
        if k >= len(z):
            raise AddressError(f"{self.folder} has pictures #0 to #{len(z) - 1}; there is no #{k}.")
        return z[k : k + 1], None if w is None else w[k : k + 1]
