"""What a bench writes, read back."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from lace.bench.record import Record, Table, machine

ROWS = [("a | b", 1e-7, 12345.0), ("c", None, 0.25), ("d", 1.0, 999.6)]
TABLE = Table("Times", ("what", "P", "seconds"), ROWS, "How to read it.")


def record(quick: bool) -> Record:
    return Record("speed", "About.", {"quick": quick}, machine(torch.device("cpu")), {"times": TABLE})


def test_the_json_holds_every_digit(tmp_path: Path) -> None:
    files = list(record(False).write(tmp_path, ["a.png"]))
    assert [file.name for file in files] == ["speed-cpu.json", "speed-cpu.md"]
    back = json.loads(files[0].read_text())
    assert back["tables"]["times"]["rows"] == [["a | b", 1e-7, 12345.0], ["c", None, 0.25], ["d", 1.0, 999.6]]
    assert back["machine"]["torch"] == torch.__version__


def test_the_table_is_for_people(tmp_path: Path) -> None:
    """Bars inside a cell must not end it; numbers have three digits."""
    *_, page = record(True).write(tmp_path, ["speed-quick-cpu.png"])
    assert page.name == "speed-quick-cpu.md"
    lines = page.read_text().splitlines()
    assert r"| a \| b | 1.0e-07 | 12,345 |" in lines
    assert "| c |  | 0.25 |" in lines
    assert "| d | 1 | 1,000 |" in lines
    assert "![speed](speed-quick-cpu.png)" in lines


def test_what_was_written_down_once_stays_beside(tmp_path: Path) -> None:
    """The authors' figures of this device go into the record, those of another device do not."""
    theirs = Table("Theirs", ("code", "milliseconds"), [("authors", 515.0), ("ours", None)], "Written down on a day.")
    list(
        Record("authors", "About.", {"quick": False}, {"device": "NVIDIA H200"}, {"beside": theirs}).write(tmp_path, [])
    )
    here, there = (
        Record("speed", "About.", {"quick": True}, {"device": d}, {"times": TABLE}) for d in ("NVIDIA H200", "cpu")
    )
    assert here.beside(tmp_path, "authors").tables == {"times": TABLE, "beside": theirs}
    assert there.beside(tmp_path, "authors").tables == {"times": TABLE}


def test_columns_by_name() -> None:
    assert TABLE.column("seconds") == [12345.0, 0.25, 999.6]
