"""The cache: made once, whole, by one process; and what is said when the disk refuses."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from lace.errors import OutputError, WeightsError
from lace.files import written_whole
from lace.weights.store import cached, home


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_lace_home_is_honoured(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home() == own_home
    monkeypatch.delenv("LACE_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    assert home().name == "lace"


def test_an_entry_is_made_once(own_home: Path) -> None:
    calls = []

    def make(path: Path) -> None:
        calls.append(path)
        path.write_text("made")

    assert [cached("a/b.txt", make).read_text() for _ in range(3)] == ["made"] * 3
    assert len(calls) == 1
    assert cached("a/b.txt", make) == own_home / "a" / "b.txt"


def test_a_failure_leaves_nothing(own_home: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        cached("entry", fail)
    assert [path.name for path in own_home.iterdir()] == ["locks"]


def test_what_a_killed_process_left_is_cleared(own_home: Path) -> None:
    stale = own_home / ".entry.partial"
    stale.mkdir(parents=True)
    (stale / "entry").write_text("half")
    assert cached("entry", lambda path: path.write_text("whole") and None).read_text() == "whole"
    assert not stale.exists()


def slow_maker(folder: str) -> str:
    os.environ["LACE_HOME"] = folder

    def make(path: Path) -> None:
        with open(Path(folder).parent / "calls", "a") as log:
            log.write("x")
        path.write_text("first half,")
        time.sleep(0.5)
        with path.open("a") as file:
            file.write("second half")

    return cached("entry", make).read_text()


def test_two_processes_make_one_entry(tmp_path: Path) -> None:
    folder = str(tmp_path / "home")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(slow_maker, [folder, folder])
    assert found == ["first half,second half"] * 2
    assert (tmp_path / "calls").read_text() == "x"


@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "No space"), (errno.EACCES, "may not be written")])
def test_the_disk_refuses_in_sentences(own_home: Path, code: int, words: str) -> None:
    def refuse(path: Path) -> None:
        raise OSError(code, os.strerror(code))

    with pytest.raises(WeightsError, match=words) as refusal:
        cached("entry", refuse)
    assert "LACE_HOME" in str(refusal.value)
    assert [path.name for path in own_home.iterdir()] == ["locks"]


def test_a_home_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "file"))
    with pytest.raises(WeightsError):
        cached("entry", lambda path: None)


def test_written_whole_replaces_or_leaves(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with written_whole(path) as beside:
        assert not path.exists()
        beside.write_text("one")
    assert path.read_text() == "one"

    def failing() -> None:
        with written_whole(path) as beside:
            beside.write_text("half of two")
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OutputError, match="No space"):
        failing()
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
