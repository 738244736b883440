"""The command line as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import lace
from lace.attributes.schema import Continuous, Discrete, Schema
from lace.commands.common import in_words
from lace.planning import percent
from tests.conftest import run

KIND = Discrete("kind", ("old", "new"))


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def one_model(ffhq: lace.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands share the session's model in place of loading it anew."""
    load = lace.model.load

    def shared(name: str, device: str, psi: float | None) -> lace.Model:
        return ffhq if (name, device) == ("ffhq", "auto") and psi in (None, 0.7) else load(name, device, psi)

    monkeypatch.setattr("lace.model.load", shared)


SENTENCE = "glasses & smile & ~male & age in 40..60"


def test_who_asks_for_what_is_rare_is_told_of_doubts(capsys: pytest.CaptureFixture[str]) -> None:
    """Nearly all of P(bald & female) is doubt about women with hair."""
    assert "sure of these on average" in run(capsys, "sample", "bald & female", "-n", "2")[1]
    assert "sure of these" not in run(capsys, "sample", "smile", "-n", "2")[1]


def test_sample_writes_a_folder_that_show_reads(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "sample", SENTENCE, "-n", "2", "--dir", "faces", "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report["formula"] == "glasses & smile & ~gender=male & age in 40..60"
    assert report["reading"] == "probability"
    assert (
        report["probability"]["interval"][0] < report["probability"]["estimate"] < report["probability"]["interval"][1]
    )
    assert report["sampler"]["name"] == "rejection"
    assert report["evaluations"] >= 2
    assert set(report["seconds"]) == {"load", "latents", "pictures"}
    kept = json.loads((tmp_path / "faces" / "run.json").read_text())
    assert kept["pictures"] == report["pictures"]
    names = sorted(path.name for path in (tmp_path / "faces").iterdir())
    address = report["pictures"][1]["address"]
    assert names == [*(Path(file).name for file in report["written"]), "latents.safetensors", "run.json"]
    with Image.open(report["written"][1]) as saved:
        first = np.asarray(saved.convert("RGB"))
        assert saved.text == {"lace:model": "ffhq", "lace:sentence": SENTENCE, "lace:address": address}
    for place in (address, "faces#1"):
        code, _, _ = run(capsys, "show", place, "--out", "again.png")
        assert code == 0
        again = np.asarray(Image.open("again.png").convert("RGB"))
        assert np.array_equal(again, first)
    code, _, err = run(capsys, "sample", SENTENCE, "-n", "2", "--dir", "faces")
    assert code == 2
    assert "already holds a run" in err


def test_sample_writes_a_sheet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "sample", "smile", "-n", "3", "--seed", "5")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "smile"
    assert out.splitlines()[-1] == "faces.png"
    assert [path.name for path in tmp_path.iterdir()] == ["faces.png"]


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", SENTENCE, "--json")
    report = json.loads(out)
    assert code == 0
    assert list(report["terms"]) == ["glasses", "smile", "~gender=male", "age in 40..60"]
    assert report["probability"]["estimate"] < min(report["terms"].values())
    assert report["expected"]["seconds"] > 0
    for sentence, sampler in (("bald & male", "level-set"), ("bald & female", "particles")):
        code, out, _ = run(capsys, "explain", sentence, "--strictness", "0.7")
        assert code == 0
        assert sampler in out


def test_models_and_attributes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "models", "--json")
    assert code == 0
    assert json.loads(out)["models"][0]["name"] == "ffhq"
    code, out, _ = run(capsys, "attributes", "--json")
    rows = {row["name"]: row for row in json.loads(out)["attributes"]}
    paper = {"smile", "glasses", "gender", "beard", "haircolor", "yaw", "pitch", "age", "bald", "width"}
    assert code == 0
    assert paper | {"light0", "light3"} <= set(rows)
    assert len(rows["haircolor"]["classes"]) == 5
    for name in ("glasses", "gender", "smile", "beard"):
        assert 0.9 < rows[name]["measured"]["accuracy"] <= 1
    assert "yaw" in run(capsys, "attributes")[1]


def test_show_several_addresses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "show", "0:1", "7:2", "--json")
    report = json.loads(out)
    assert code == 0
    assert [row["address"] for row in report["pictures"]] == ["0:1", "7:2"]
    assert (tmp_path / "shown.png").exists()


REFUSED = [
    (["sample", "smlie"], "did you mean 'smile'?"),
    (["sample", "(smile"], "never closed"),
    (["sample", "smile &"], "missing"),
    (["sample", "age=-5"], "runs from 0 to 80 years"),
    (["sample", "haircolor=blnd"], "did you mean 'blond'?"),
    (["sample", "smile", "-n", "0"], "1 to"),
    (["sample", "smile", "-n", "many"], "whole number"),
    (["sample", "smile", "--seed", "-1"], "0 to"),
    (["sample", "smile", "--model", "fhq"], "did you mean 'ffhq'?"),
    (["sample", "smile", "--out", "faces.txt"], "no picture's name"),
    (["sample", "smile", "--out", "/proc/nowhere/faces.png"], "cannot be written"),
    (["sample", "smile", "--dir", "/proc/nowhere"], "cannot be written"),
    (["sample", "smile", "--dir", "a", "--out", "b.png"], "not both"),
    (["sample", "smile", "-n", "5000"], "--dir"),
    (["sample", "smile", "--strictness", "1.5"], "0 to 1"),
    (["sample", "smile", "--sampler", "magic"], "rejection"),
    (["sample", "smile", "--psi", "0"], "psi"),
    (["sample", "smile", "--device", "abacus"], "device"),
    (["sample", "smile", "--device", "meta"], "device"),
    (["sample", "smile", "--strictness", "nan"], "0 to 1"),
    (["sample", "smile", "--psi", "nan"], "psi"),
    (["sample", "smile", "--reading", "tarot"], "probability and energy"),
    (["sample", "smile", "--reading", "energy", "--sampler", "rejection"], "take smc"),
    (["explain", "smile", "--reading", "energy", "--strictness", "0.8"], "know no energies"),
    (["sample", "smile", "--out", "x" * 300 + ".png"], "too long"),
    (["sample", "smile", "--dir", "x" * 300], "too long"),
    (["sample", "smile", "-n", str(10**12), "--sampler", "ode", "--dir", "/tmp"], "at most 1,048,576"),
    (["sample", "bald & beard & lipstick & female & age<10"], "out of reach"),
    (["explain", ""], "empty"),
    (["show", "somewhere"], "not an address"),
    (["show", "nowhere#1"], "run.json"),
    (["show", "faces#x"], "DIR#3"),
    (["attributes", "--model", "cats"], "ffhq"),
    (["draw"], "invalid choice"),
    ([], "COMMAND"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), REFUSED, ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else ""
)
def test_refusals(capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str) -> None:
    """One sentence on stderr, exit code 2, nothing on stdout, nothing left behind."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("lace: ")
    assert words in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("field", [{"model": ["ffhq"]}, {"psi": "much"}, {"model": "cats"}])
def test_a_folder_that_tells_nonsense_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, field: dict[str, object]
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"model": "ffhq", "psi": 0.7, **field}))
    code, out, err = run(capsys, "show", f"{tmp_path}#0")
    assert (code, out) == (2, "")
    assert err.startswith("lace: ")


def test_latents_of_another_model_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"model": "ffhq", "psi": 0.7}))
    save_file({"z": torch.zeros(2, 64)}, tmp_path / "latents.safetensors")
    code, _, err = run(capsys, "show", f"{tmp_path}#1")
    assert code == 2
    assert "another model" in err


def test_words_are_what_is_likely_and_numbers_keep_their_value() -> None:
    """A width of 0.9 is no word that holds."""
    words = Schema([Discrete("hat"), Continuous("age", 0, 80, "years"), Continuous("width", 0.7, 1.05), KIND])
    likely = {"hat": 0.7, "age": 41.6, "width": 0.9, "kind": {"old": 0.2, "new": 0.8}}
    assert in_words(likely, words) == "hat, age 42, new"
    assert in_words({**likely, "hat": 0.3}, words) == "age 42, new"


@pytest.mark.parametrize(
    ("p", "text"), [(0.5, "50 %"), (0.0549, "5.49 %"), (1.35e-4, "0.0135 %"), (4.58e-5, "0.0046 %"), (9e-7, "< 1e-6")]
)
def test_probabilities_are_read_in_one_unit(p: float, text: str) -> None:
    assert percent(p) == text


def test_a_full_standard_output_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "lace", "attributes"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.startswith(b"lace: standard output cannot be used")
    assert done.stderr.count(b"\n") == 1


def test_help_loads_no_torch() -> None:
    program = (
        "import sys, lace.cli\ntry: lace.cli.main(['--help'])\n"
        "except SystemExit: sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "sample" in done.stdout


def test_words_are_listed_without_torch() -> None:
    program = "import sys, lace.cli; lace.cli.main(['attributes']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def test_no_bar_in_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lace", "sample", "smile", "-n", "1", "--out", "one.png"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
