"""Labels from a file: CSV or Parquet with the columns address and label, and psi where pictures had one of their own.

    address,psi,file,label
    20211206:0,0.8731,000000.png,yes

Rows without a label are left out. An address that occurs twice gets the mean, and how often its labels agree is the
labels' own noise. A row without psi is the picture that ``lace show ADDRESS`` draws.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from tqdm import tqdm

from ..attributes.schema import Attribute, Continuous
from ..errors import AddressError, DataError, OutputError
from ..files import writable_folder, written_whole
from ..rng import Address
from ..sheet import save_picture
from .answers import Rows, one_row
from .draws import SEED, latents, truncation
from .parquet import read_parquet

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["TABLE", "Table", "export_pictures", "read_table"]

TABLE = "labels.csv"
COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
# Refusals name at most so many wrong rows.
SHOWN = 3


@dataclass(frozen=True)
class Table:
    """Addresses, psi [N] with NaN for the model's own, rows [N, columns], and how often repeated labels agree."""

    addresses: list[Address]
    psi: torch.Tensor
    rows: Rows
    agreement: float | None


def read_table(path: Path, attribute: Attribute) -> Table:
    """The labels of a file for one word."""
    columns = _columns(path)
    for needed in ("address", "label"):
        if needed not in columns:
            raise DataError(f"{path} has no column '{needed}'; it has {', '.join(columns) or 'none'}.")
    wrong: list[str] = []
    found: dict[tuple[Address, float | None], list[list[float]]] = {}
    psis = columns.get("psi", [None] * len(columns["address"]))
    for k, (address, label, psi) in enumerate(zip(columns["address"], columns["label"], psis, strict=True)):
        try:
            row = one_row(attribute, label)
            if not np.isnan(row[0]):
                found.setdefault((Address.parse(str(address)), _psi(psi)), []).append(row)
        except (AddressError, DataError) as error:
            wrong.append(f"row {k + 2}: {error}")
    if wrong:
        more = f" {len(wrong) - SHOWN} rows more are wrong." if len(wrong) > SHOWN else ""
        raise DataError(f"{path}, {' '.join(wrong[:SHOWN])}{more}")
    if not found:
        raise DataError(f"{path} has no labels yet; fill in the column 'label'.")
    rows = np.array([np.mean(same, axis=0) for same in found.values()])
    psi = torch.tensor([float("nan") if psi is None else psi for _, psi in found], dtype=torch.float32)
    return Table([address for address, _ in found], psi, rows, _agreement(attribute, list(found.values())))


def _agreement(attribute: Attribute, answers: Sequence[list[list[float]]]) -> float | None:
    """How often two labels of one picture name the same class, or by how much their numbers differ on average."""
    pairs = [(same[0], same[1]) for same in answers if len(same) > 1]
    if not pairs:
        return None
    if isinstance(attribute, Continuous):
        return float(np.mean([abs(a[0] - b[0]) for a, b in pairs]))
    return float(np.mean([np.argmax(a) == np.argmax(b) for a, b in pairs]))


def _psi(value: Any) -> float | None:
    if value is None or str(value).strip().lower() in ("", "nan"):
        return None
    try:
        psi = float(value)
    except (TypeError, ValueError):
        psi = -1.0
    if not 0 < psi <= 1:
        raise DataError(f"'{value}' is no psi; it is above 0 and at most 1.")
    return psi


def _columns(path: Path) -> dict[str, list[Any]]:
    """Columns by their names in small letters."""
    if not path.is_file():
        raise DataError(f"There is no file {path}; labels are a CSV or Parquet file.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return {str(name).strip().lower(): values for name, values in read_parquet(path).items()}
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as CSV ({error}).") from error
    return _csv_columns(path, text)


def _csv_columns(path: Path, text: str) -> dict[str, list[Any]]:
    first = text.split("\n", 1)[0]
    # Spreadsheets of half the world put semicolons where the others put commas.
    separator = max(",;\t", key=first.count)
    try:
        lines = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if any(row)]
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as CSV ({error}).") from error
    if not lines:
        raise DataError(f"{path} is empty; it needs the columns address and label.")
    header = [name.strip().lower() for name in lines[0]]
    for number, row in enumerate(lines):
        if len(row) > len(header):
            raise DataError(
                f"{path}, row {number + 1} has {len(row)} cells under {len(header)} names; what holds a "
                f"'{separator}' itself stands in quotes."
            )
    if doubled := {name for name in header if name and header.count(name) > 1}:
        raise DataError(f"{path} has the column '{min(doubled)}' twice; keep one of them.")
    padded = [row + [""] * (len(header) - len(row)) for row in lines[1:]]
    # Where commas do not part cells, they are what others write as a point.
    cell = (lambda text: text) if separator == "," else with_point
    return {name: [cell(row[k]) for row in padded] for k, name in enumerate(header)}


def with_point(text: str) -> str:
    """A number such as 0,87 as 0.87; any other text as it is."""
    return text.replace(",", ".") if COMMA.fullmatch(text.strip()) else text


def export_pictures(model: Model, folder: Path, n: int) -> Path:
    """Draw the first n labelled draws into a folder, beside the table to fill in."""
    table = folder / TABLE
    if table.exists():
        raise OutputError(f"{table} is there already and may hold your labels; choose another folder.")
    writable_folder(folder)
    index, lines = torch.arange(n, device=model.device), ["address,psi,file,label"]
    psi = truncation(index).tolist()
    pictures = tqdm(
        model.pictures(latents(model.generator, index)), desc="Drawing pictures", total=n, disable=None, leave=False
    )
    for k, picture in enumerate(pictures):
        name = f"{k:06d}.png"
        save_picture(Image.fromarray(picture), folder / name, {"model": model.name, "address": f"{SEED}:{k}"})
        lines.append(f"{SEED}:{k},{'' if model.generator.psi is None else f'{psi[k]:.9g}'},{name},")
    with written_whole(table) as beside:
        beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return table
