"""``lace edit`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

import lace
from tests.conftest import run

Report = dict[str, object]


@pytest.fixture(autouse=True)
def one_model(ffhq: lace.Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lace.model.load", lambda *_, **__: ffhq)


def test_a_strip_and_what_changed(capsys: pytest.CaptureFixture[str], ffhq: lace.Model) -> None:
    code, out, err = run(capsys, "edit", "0:120", "glasses", "--out", "strip.png", "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    start, edited = report["stages"]
    assert start["address"] == report["start"] == "0:120"
    assert start["attributes"] == ffhq.at(["0:120"]).values(0)
    assert start["attributes"]["glasses"] < 0.1 < 0.9 < edited["attributes"]["glasses"]
    assert edited["changed"]["glasses"] == [start["attributes"]["glasses"], edited["attributes"]["glasses"]]
    # A person in glasses is more like that person than like another, who would be near 0.9.
    assert 0.05 < edited["identity"]["total"] == edited["identity"]["step"] < 0.6
    with Image.open("strip.png") as strip:
        assert strip.width > 2 * 500


def test_a_folder_goes_on_where_it_ended(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The second picture of the folder is the edited one, its w included; it is drawn again to the last bit."""
    assert run(capsys, "edit", "0:120", "yaw=20", "--subset", "--dir", "turned")[0] == 0
    pictures = sorted((tmp_path / "turned").glob("*.png"))
    assert len(pictures) == 2
    assert run(capsys, "show", "turned#1", "--out", "again.png")[0] == 0
    with Image.open("again.png") as again, Image.open(pictures[1]) as kept:
        assert again.tobytes() == kept.tobytes()
    code, out, _ = run(capsys, "edit", "turned#1", "smile=no", "--json")
    before = json.loads(out)["stages"][0]["attributes"]
    recorded = json.loads((tmp_path / "turned" / "run.json").read_text())["stages"][1]["attributes"]
    assert code == 0
    assert before["yaw"] == pytest.approx(recorded["yaw"], abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["0:120", "glases"], "did you mean 'glasses'"),
        (["0:120", "glasses", "--amount", "2"], "amount runs from 0 to 1"),
        (["0:120", "glasses", "--amount", "nan"], "amount runs from 0 to 1"),
        (["0:120", "glasses", "--method", "magic"], "neighbourhood and paper"),
        (["0:120", "glasses", "--method", "paper", "--amount", "0.2"], "no amount"),
        (["0:120", "glasses", "--temperature", "0.5"], "temperature"),
        (["0:120", "glasses", "--method", "paper", "--temperature", "0"], "temperature must be above 0"),
        (["nowhere", "glasses"], "not an address"),
        (["folder#0", "glasses"], "run.json"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], sentence: str) -> None:
    code, out, err = run(capsys, "edit", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())
