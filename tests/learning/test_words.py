"""Taught words: in sentences at once, in files that travel, and never in the way of words that are there."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lace
from lace.attributes import words
from lace.attributes.card import read_card, write_with_card
from lace.attributes.heads import FunctionHeads, JoinedHeads, MlpHeads
from lace.attributes.schema import Continuous, Discrete, Schema
from lace.errors import ConditionError, DataError, LaceError, UnknownNameError, UnreadableWord
from lace.learning import draws
from tests.conftest import run, within

FFHQ = "ffhq-mobilestylegan-1"


def untaught(**options) -> lace.Model:
    """The toy's pictures without its words: red is z0, green z1."""
    draw = lambda z: z[:, :3, None, None].expand(-1, 3, 4, 4).tanh()  # noqa: E731
    generator = lace.FunctionGenerator(draw, latent_dim=8, identity="toy")
    known = [(Continuous("tone", -6, 6, sigma=0.5), lambda w: w[:, 1])]
    return lace.Model(generator, known, bank_size=2**13, **options)


def red(pictures):
    return pictures[:, 0, 0, 0] > 127


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[lace.Model, Path]:
    """A model that was taught three words, and the folder of its shelf."""
    shelf = tmp_path_factory.mktemp("shelf")
    model = untaught(shelf=shelf)
    model.learn("red", red, n=1000)
    model.learn("green", lambda p: p[:, 0, 0, 1] / 255, range=(0, 1), unit="parts", n=600)
    share = lambda p: torch.tensor(p[:, 0, 0].astype(float) / 64).softmax(dim=1)  # noqa: E731
    model.learn("main", share, classes=["reddest", "greenest", "bluest"], n=1000)
    return model, shelf


def test_a_word_stands_in_sentences_at_once(taught) -> None:
    """P(red) is 1/2; red and tone>1 are independent; the pictures that are drawn obey."""
    model, _ = taught
    tone = 0.5 * math.erfc(1 / math.sqrt(1.25) / math.sqrt(2))
    assert model.probability("red").probability == pytest.approx(0.5, abs=0.04)
    both = model.probability("red & tone>1").probability
    assert both == pytest.approx(0.5 * tone, abs=0.02 + 4 * math.sqrt(tone / 2 / 2**13))
    out = model.sample("red & green>0.7 & ~bluest", n=40, seed=1, strictness=0.5)
    assert (out.images[:, 0, 0, 0] > 127).mean() > 0.9
    assert (out.images[:, 0, 0, 1] > 0.6 * 255).mean() > 0.9
    assert model.explain("red & tone>1").terms.keys() == {"red", "tone>1"}
    assert set(out.values(0)) == {"tone", "red", "green", "main"}


def test_a_number_is_read_in_its_unit(taught) -> None:
    model, _ = taught
    drawing = model.latents("green in 0.4..0.6", n=100)
    found = torch.tensor([drawing.values(k)["green"] for k in range(100)])
    truth = drawing.w[:, 1].tanh() / 2 + 0.5
    assert float((found - truth).abs().mean()) < 0.06


def test_words_on_a_shelf_carry_their_cards(taught) -> None:
    _, shelf = taught
    assert sorted(path.name for path in shelf.glob("*.safetensors")) == [
        "green.safetensors",
        "main.safetensors",
        "red.safetensors",
    ]
    card = read_card(shelf / "red.safetensors")
    assert card["model"] == "toy"
    assert card["labels"] == 1000
    assert card["judge"]["name"] == "red"
    assert within(card["base_rate"]["yes"]["mean"], 0.5, math.sqrt(0.25 / 1000))
    assert card["measured"]["red"]["accuracy"] > 0.95
    assert {"AUC", "R2"} >= {card["test"]["figure"]}


def test_a_file_teaches_another_copy_of_the_model(taught) -> None:
    model, shelf = taught
    other = untaught()
    other.add(shelf / "red.safetensors")
    w = draws.latents(other.generator, torch.arange(50))
    columns = other.schema.slice("red")
    assert torch.equal(other.heads(w)[:, columns], model.heads(w)[:, model.schema.slice("red")])
    with pytest.raises(DataError, match="already"):
        other.add(shelf / "red.safetensors")
    stranger = lace.Model(lace.FunctionGenerator(lambda z: z, 8, identity="other"), [])
    with pytest.raises(DataError, match="was made for 'toy', not for 'other'"):
        stranger.add(shelf / "red.safetensors")


def test_a_model_without_words_learns_its_first(tmp_path: Path) -> None:
    model = lace.Model(lace.FunctionGenerator(untaught().generator._fn, 8), [], bank_size=2**12)
    assert model.read(torch.zeros(2, 8)).shape == (2, 0)
    with pytest.raises(UnknownNameError, match="no words yet"):
        model.formula("red")
    report = model.learn("red", red, n=400)
    assert model.probability("red").probability == pytest.approx(0.5, abs=0.06)
    assert "400 labels by red" in str(report)
    report.save(tmp_path / "red.safetensors")
    assert MlpHeads.load(tmp_path / "red.safetensors").schema.attributes == model.schema.attributes


@pytest.mark.parametrize(
    ("name", "options", "words_of_it"),
    [
        ("tone", {}, "already"),
        ("Red", {}, "small letters"),
        ("and", {}, "grammar"),
        ("red", {"classes": ["tone", "b"]}, "'tone' is a word of this model already"),
        ("red", {"classes": ["red", "b"]}, "one of its classes"),
        ("red", {"classes": ["a"]}, "two classes"),
        ("red", {"range": (5, 1)}, "low must be below high"),
        ("red", {"range": (0, math.inf)}, "finite"),
        ("red", {"unit": "m"}, "range"),
        ("red", {"n": 10}, "at least 50"),
        ("red", {"classes": ["a", "b"], "range": (0, 1)}, "not both"),
    ],
)
def test_words_that_would_be_in_the_way_are_refused_before_any_work(name, options, words_of_it: str) -> None:
    def never(pictures):
        raise AssertionError("The judge was asked.")

    with pytest.raises(LaceError, match=words_of_it):
        untaught().learn(name, never, **options)


def test_no_class_of_another_word_may_be_taken() -> None:
    known = [Discrete("gender", ("female", "male")), Discrete("hat")]
    for attribute in (Discrete("male"), Discrete("x", ("male", "b")), Discrete("x", ("hat", "b")), Discrete("yes")):
        with pytest.raises(DataError, match="already"):
            words.check_new(attribute, known)
    words.check_new(Discrete("coat", ("long", "short")), known)


def test_what_cannot_be_read_is_refused_and_not_learned() -> None:
    model = untaught()
    rng = torch.Generator().manual_seed(0)
    with pytest.raises(UnreadableWord, match=r"guessing gives 0\.5"):
        model.learn("chance", lambda p: torch.rand(len(p), generator=rng) < 0.5, n=600)
    assert "chance" not in model.schema


def test_joined_heads_read_as_their_parts_and_have_a_name_of_their_own() -> None:
    one, two = (MlpHeads(Schema([Discrete(name)]), 4, torch.ones(1, 1)) for name in ("a", "b"))
    for seed, heads in enumerate((one, two)):
        heads.initialise(torch.Generator().manual_seed(seed)).requires_grad_(False).signed()
    w = torch.randn(5, 4, generator=torch.Generator().manual_seed(2))
    joined = JoinedHeads([JoinedHeads([one]), two, FunctionHeads([])])
    assert torch.equal(joined(w), torch.cat([one(w), two(w)], dim=1))
    assert [attribute.name for attribute in joined.schema] == ["a", "b"]
    assert len({one.identity, two.identity, joined.identity, JoinedHeads([two, one]).identity}) == 4
    unnamed = FunctionHeads([(Discrete("c"), lambda w: w[:, :2])])
    assert JoinedHeads([one, unnamed]).identity == ""


def test_a_new_word_leaves_the_banks_of_others_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path))
    one, two = (MlpHeads(Schema([Discrete(name)]), 8, torch.ones(1, 1)) for name in ("a", "b"))
    for seed, heads in enumerate((one, two)):
        heads.initialise(torch.Generator().manual_seed(seed)).requires_grad_(False).signed()
    generator = untaught().generator
    for heads in (one, JoinedHeads([one, two])):
        model = lace.Model(generator, heads, bank_size=512)
        assert torch.allclose(model.bank.readings, model.read(generator.prior(0, torch.arange(512))), atol=1e-6)
    assert len(list((tmp_path / "banks").iterdir())) == 2


# On the command line: the face model, taught by a table, so that no picture need be drawn.


@pytest.fixture
def faces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ffhq: lace.Model) -> Path:
    """A cache of its own in which the model is, and a table that knows the first number of w."""
    home = tmp_path / "home"
    home.mkdir()
    from lace.weights.store import home as real

    (home / f"{FFHQ}.safetensors").symlink_to(real() / f"{FFHQ}.safetensors")
    monkeypatch.setenv("LACE_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    index = torch.arange(800)
    w = draws.latents(ffhq.generator, index)
    side = (w - ffhq.generator.w_mean)[:, :20].sum(dim=1) > 0
    rows = [
        f"{draws.SEED}:{i},{psi:.9g},{int(yes)}"
        for i, psi, yes in zip(index, draws.truncation(index), side, strict=True)
    ]
    (tmp_path / "side.csv").write_text("\n".join(["address,psi,label", *rows]) + "\n")
    return tmp_path


def test_a_word_by_the_command_line(faces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Learned, listed without torch, loaded, given away, removed, and taken in again."""
    code, out, err = run(
        capsys, "learn", "side", "--labels", "side.csv", "--about", "a side", "--out", "side.safetensors", "--json"
    )
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report["labels"] == 800
    assert report["measured"]["side"]["accuracy"] > 0.7
    program = "import sys, lace.cli; lace.cli.main(['attributes']); sys.exit('torch' in sys.modules)"
    listed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert listed.returncode == 0
    assert "taught by side.csv" in listed.stdout
    assert "side" in json.loads(run(capsys, "models", "--json")[1])["models"][0]["attributes"]
    model = lace.load("ffhq", device="cpu")
    w = model.generator.to_w(model.generator.prior(7, torch.arange(400)))
    truth = (w - model.generator.w_mean)[:, :20].sum(dim=1) > 0
    assert float(((model.heads(w)[:, model.schema.slice("side")].argmax(dim=1) == 1) == truth).float().mean()) > 0.7
    assert str(model.formula("side & ~glasses")) == "side & ~glasses"
    assert "'side' is a word of this model already" in run(capsys, "learn", "side", "--labels", "side.csv")[2]
    assert run(capsys, "attributes", "--remove", "side")[0] == 0
    assert "taught by" not in run(capsys, "attributes")[1]
    assert run(capsys, "attributes", "--add", "side.safetensors")[0] == 0
    assert "side" in [row["name"] for row in json.loads(run(capsys, "attributes", "--json")[1])["attributes"]]
    assert "already" in run(capsys, "attributes", "--add", "side.safetensors")[2]


REFUSED = [
    (["learn"], "NAME"),
    (["learn", "x"], "none was given"),
    (["learn", "x", "--labels", "side.csv", "--judge", "a.py:b"], "judge and labels were given"),
    (["learn", "smile", "--labels", "side.csv"], "already"),
    (["learn", "blond", "--labels", "side.csv"], "class of 'haircolor'"),
    (["learn", "x", "--labels", "none.csv"], "no file"),
    (["learn", "x", "--labels", "side.csv", "--classes", "a,b,male"], "'male' is a class of 'gender'"),
    (["learn", "x", "--labels", "side.csv", "--classes", "a,b", "--range", "0", "1"], "not both"),
    (["learn", "x", "--judge", "none.py:f"], "no file none.py"),
    (["learn", "x", "--onnx", "none.onnx"], "none.onnx"),
    (["learn", "x", "--text", "a cat"], "--against"),
    (["learn", "x", "--prompts", "afhq-cat"], "did you mean 'afhq-cats'"),
    (["learn", "x", "--examples", "here", "there"], "no folder"),
    (["learn", "x", "--model", "fhq", "--labels", "side.csv"], "did you mean 'ffhq'"),
    (["attributes", "--remove", "smile"], "came with the model"),
    (["attributes", "--remove", "x"], "never taught"),
    (["attributes", "--add", "side.csv"], "no file of LACE"),
    (["attributes", "--add", "a", "--remove", "b"], "not allowed"),
]


@pytest.mark.parametrize(
    ("arguments", "sentence"), REFUSED, ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else ""
)
def test_refusals(faces: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    before = {path for path in faces.rglob("*") if path.is_file()}
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lace: ")
    assert sentence in err
    assert {path for path in faces.rglob("*") if path.is_file() and path.suffix != ".lock"} <= before


def test_removing_says_what_can_be_removed() -> None:
    with pytest.raises(ConditionError, match="came with the model"):
        words.remove("smile", "ffhq", ["smile"])


@given(
    card=st.one_of(
        st.dictionaries(
            st.sampled_from(["model", "schema", "judge"]),
            st.one_of(st.text(max_size=5), st.lists(st.none(), max_size=2)),
        ),
        st.fixed_dictionaries(
            {
                "model": st.just("m"),
                "schema": st.lists(st.fixed_dictionaries({"name": st.text(max_size=4)}), max_size=2),
            }
        ),
    )
)
def test_any_card_is_taken_in_or_refused(tmp_path_factory: pytest.TempPathFactory, card: dict) -> None:
    """A file that somebody gave is not to be trusted."""
    path = tmp_path_factory.mktemp("given") / "w.safetensors"
    write_with_card(path, {"a": torch.zeros(1)}, card)
    with pytest.raises(LaceError):
        words.add(path, "nowhere", "other", [])
