"""Labels from files, and the pictures to be labelled."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import lace
from lace.attributes.schema import Continuous, Discrete
from lace.errors import DataError, LaceError, OutputError
from lace.learning import draws
from lace.learning.tables import TABLE, export_pictures, read_table

BEARD, AGE = Discrete("beard"), Continuous("age", 0, 80, "years")


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_is_read(tmp_path: Path) -> None:
    """Any order of columns, semicolons, a byte order mark, empty labels, an address labelled twice."""
    text = "\ufeffLabel;psi;address\nyes;0.5;0:1\n;0.5;0:2\nno;;1:7\nyes;;1:7\nno;0.75;0:1\n"
    table = read_table(written(tmp_path / "l.csv", text), BEARD)
    assert [str(address) for address in table.addresses] == ["0:1", "1:7", "0:1"]
    assert table.rows.tolist() == [[0, 1], [0.5, 0.5], [1, 0]]
    assert np.array_equal(table.psi.numpy(), np.array([0.5, np.nan, 0.75], dtype=np.float32), equal_nan=True)
    assert table.agreement == 0.0


def test_parquet_and_csv_say_the_same(tmp_path: Path) -> None:
    rows = {"address": ["0:1", "0:2", "0:3"], "label": [20.5, None, 41.0]}
    pyarrow.parquet.write_table(pyarrow.table(rows), tmp_path / "l.parquet")
    csv = written(tmp_path / "l.csv", "address,label\n0:1,20.5\n0:2,\n0:3,41\n")
    tables = [read_table(path, AGE) for path in (tmp_path / "l.parquet", csv)]
    assert tables[0].rows.tolist() == tables[1].rows.tolist() == [[20.5], [41.0]]
    assert tables[0].addresses == tables[1].addresses


def test_labels_of_one_picture_that_differ_are_noise(tmp_path: Path) -> None:
    """Three pairs, of which two agree; numbers that differ by 4 and 0."""
    pairs = "0:1,yes\n0:1,yes\n0:2,no\n0:2,yes\n0:3,no\n0:3,no\n0:4,no\n"
    assert read_table(written(tmp_path / "a.csv", f"address,label\n{pairs}"), BEARD).agreement == pytest.approx(2 / 3)
    numbers = "address,label\n0:1,30\n0:1,34\n0:2,50\n0:2,50\n"
    assert read_table(written(tmp_path / "b.csv", numbers), AGE).agreement == pytest.approx(2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("address\n0:1\n", "no column 'label'"),
        ("address,label\n", "no labels yet"),
        ("address,label\n0:1,\n", "no labels yet"),
        ("address,label\nx,yes\n", "row 2: 'x' is not an address"),
        ("address,label\n0:1,yes\n0:2,perhaps\n", "row 3: 'perhaps' is no class"),
        ("address,label,psi\n0:1,yes,7\n", "'7' is no psi"),
        ("address,label\n0:1,47,66\n", "row 2 has 3 cells under 2 names"),
        ("address,label,Address\n0:1,yes,0:2\n", "column 'address' twice"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_table(written(tmp_path / "l.csv", text), BEARD)
    with pytest.raises(DataError, match="no file"):
        read_table(tmp_path / "none.csv", BEARD)


def test_spreadsheets_with_decimal_commas(tmp_path: Path) -> None:
    """Half the world's: semicolons between cells, commas inside numbers; a text may have a comma too."""
    text = "address;psi;note;label\n0:1;0,8731;a, b;47,25\n0:2;;1,2,3;-0,5\n0:3;1;;12\n"
    table = read_table(written(tmp_path / "l.csv", text), Continuous("brightness", -1, 100))
    assert table.rows[:, 0].tolist() == [47.25, -0.5, 12]
    assert torch.allclose(table.psi, torch.tensor([0.8731, math.nan, 1]), equal_nan=True)


@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=100).map(lambda t: f"address,label\n{t}".encode())))
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_any_file_is_a_table_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("table") / f"l{suffix}"
    path.write_bytes(content)
    try:
        table = read_table(path, BEARD)
    except LaceError as error:
        assert path.name in str(error)
        return
    assert len(table.addresses) == len(table.rows) > 0


def test_exported_pictures_are_those_of_their_table(toy: lace.Model, tmp_path: Path) -> None:
    """The table, filled in with what a picture shows, teaches the word of the latents that it was drawn from."""
    table = export_pictures(toy, tmp_path / "out", 60)
    lines = table.read_text().splitlines()
    assert lines[0] == "address,psi,file,label"
    assert len(lines) == 61
    filled = []
    for line in lines[1:]:
        address, _, name, _ = line.split(",")
        red = np.asarray(Image.open(table.parent / name))[0, 0, 0]
        filled.append(f"{address},{'yes' if red > 127 else 'no'}")
    answers = read_table(written(tmp_path / "l.csv", "address,label\n" + "\n".join(filled)), BEARD)
    w = draws.latents_at(toy.generator, answers.addresses, answers.psi)
    assert torch.equal(w, draws.latents(toy.generator, torch.arange(60)))
    assert ((w[:, 0] > 0).numpy() == (answers.rows[:, 1] == 1)).all()
    with pytest.raises(OutputError, match="your labels"):
        export_pictures(toy, tmp_path / "out", 60)
    assert table.name == TABLE


def test_latents_of_mixed_addresses_are_the_models_own(toy: lace.Model) -> None:
    places = [lace.Address(0, 5), lace.Address(9, 2), lace.Address(0, 1)]
    w = draws.latents_at(toy.generator, places, torch.full((3,), float("nan")))
    assert torch.equal(w, toy.at(places).w)


def test_psi_of_a_row_is_its_pictures_own(ffhq: lace.Model) -> None:
    """Without psi a row is the picture that show draws; with one it is truncated by that."""
    places = [lace.Address(3, 1)] * 3
    w = draws.latents_at(ffhq.generator, places, torch.tensor([float("nan"), 0.7, 0.5]))
    mean = ffhq.generator.w_mean
    assert torch.allclose(w[0], ffhq.at(places[:1]).w[0], atol=1e-5)
    assert torch.allclose(w[1], w[0])
    assert torch.allclose((w[2] - mean) / 0.5, (w[0] - mean) / 0.7, atol=1e-4)
