"""Parquet files as columns of plain values, by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtraError
from ..files import written_whole

__all__ = ["read_parquet", "require_parquet", "write_parquet"]


def require_parquet() -> Any:
    """The library; asked for before any work is done."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Labels are kept as Parquet, which", "learn") from error
    return pyarrow


def read_parquet(path: Path) -> dict[str, list[Any]]:
    """The columns of a file."""
    pyarrow = require_parquet()
    try:
        return pyarrow.parquet.read_table(path, partitioning=None).to_pydict()
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}).") from error


def write_parquet(path: Path, columns: dict[str, Any]) -> None:
    """Write columns whole."""
    pyarrow = require_parquet()
    with written_whole(path) as beside:
        pyarrow.parquet.write_table(pyarrow.table(columns), beside)
