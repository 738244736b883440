"""Labels on disk: whole parts, one owner, one judge; a killed process goes on where it was."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import lace
from lace.attributes.schema import Discrete
from lace.errors import DataError, OutputError
from lace.learning.journal import Journal
from lace.learning.parquet import read_parquet

WORD = Discrete("bright")

# A toy model, taught by a judge that writes down what it was asked, and kills its own process at the DEATH-th call.
PROGRAM = """
import os, signal, sys, torch, lace
death, calls = int(sys.argv[2]), 0

def draw(z):
    return z[:, :3, None, None].expand(-1, 3, 4, 4).tanh()

def judge(pictures):
    global calls
    calls += 1
    if calls == death:
        os.kill(os.getpid(), signal.SIGKILL)
    with open("asked.txt", "a") as file:
        file.writelines(f"{picture[0, 0].tolist()}\\n" for picture in pictures)
    return pictures[:, 0, 0, 0] > RARE

model = lace.Model(lace.FunctionGenerator(draw, latent_dim=8), [], bank_size=64)
report = model.learn("bright", judge, n=int(sys.argv[3]), work=sys.argv[1])
print(report.card["labels"], report.card["base_rate"]["yes"]["mean"])
"""


def taught(folder: Path, death: int, n: int, threshold: int) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("RARE", str(threshold)), encoding="utf-8")
    command = [sys.executable, str(program), "work", str(death), str(n)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_killed_process_goes_on_and_nothing_is_labelled_twice(tmp_path: Path) -> None:
    """Killed twice, the second time in a round that looks for what is rare; then taught as if nothing had been."""
    threshold = 245
    truth = 0.5 * math.erfc(math.atanh((threshold + 1 - 128) / 127.5) / math.sqrt(2))
    for death in (12, 20):
        assert taught(tmp_path, death, 640, threshold).returncode == -9
        assert all(read_parquet(part) for part in (tmp_path / "work").glob("labels-*.parquet"))
    done = taught(tmp_path, 0, 640, threshold)
    assert done.returncode == 0, done.stderr
    asked = Counter((tmp_path / "asked.txt").read_text().splitlines())
    kept = Journal(tmp_path / "work", WORD, 20211206).read()
    labels, rate = done.stdout.split()
    assert int(labels) == len(kept.index) == sum(asked.values()) == len(np.unique(kept.index))
    assert len(kept.index) == pytest.approx(640, abs=0.05 * 640 + 4 * 160**0.5)
    # Four standard errors of 640 plain draws: looking for the rare ones makes it narrower.
    assert float(rate) == pytest.approx(truth, abs=4 * (truth * (1 - truth) / 640) ** 0.5)
    # Once more, and the judge is not asked at all.
    assert taught(tmp_path, 1, 640, threshold).returncode == 0


def test_more_pictures_go_on_from_those_there_are(tmp_path: Path) -> None:
    for n in (160, 320):
        assert taught(tmp_path, 0, n, 127).stdout.split()[0] == str(n)
    assert len((tmp_path / "asked.txt").read_text().splitlines()) == 320


def test_labels_of_two_judges_never_mix(tmp_path: Path) -> None:
    with Journal.opened(tmp_path, WORD, 1, {"word": ["bright"], "judge": {"name": "a"}}) as journal:
        journal.write(np.arange(3), [0.5] * 3, 0, np.ones(3), np.array([[0.0, 1.0], [1.0, 0.0], [np.nan, np.nan]]))
    with Journal.opened(tmp_path, WORD, 1, {"word": ["bright"], "judge": {"name": "a"}}) as journal:
        kept = journal.read()
    assert kept.index.tolist() == [0, 1, 2]
    assert np.array_equal(kept.rows, [[0, 1], [1, 0], [np.nan, np.nan]], equal_nan=True)
    other = {"word": ["bright"], "judge": {"name": "b"}}
    with pytest.raises(DataError, match=r"another judge.*--restart"), Journal.opened(tmp_path, WORD, 1, other):
        pass
    with Journal.opened(tmp_path, WORD, 1, other, restart=True) as journal:
        assert len(journal.read().index) == 0
    assert json.loads((tmp_path / "word.json").read_text()) == other


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        Journal.opened(tmp_path, WORD, 1, {}),
        pytest.raises(OutputError, match="Another process"),
        Journal.opened(tmp_path, WORD, 1, {}),
    ):
        pass


def test_a_folder_that_cannot_be_is_a_sentence() -> None:
    with pytest.raises(OutputError), Journal.opened(Path("/proc/nowhere"), WORD, 1, {}):
        pass


def test_ctrl_c_keeps_what_was_labelled(toy: lace.Model, tmp_path: Path) -> None:
    calls = []

    def judge(pictures):
        calls.append(len(pictures))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return [True] * len(pictures)

    with pytest.raises(KeyboardInterrupt):
        toy.learn("stopped", judge, n=400, work=tmp_path)
    assert len(Journal(tmp_path, Discrete("stopped"), 20211206).read().index) == sum(calls[:3])
    assert "stopped" not in toy.schema
