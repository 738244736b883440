"""Judges: functions by name, ONNX networks by their card, CLIP, and one's own pictures."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lace.attributes.schema import Continuous, Discrete, Schema
from lace.errors import DataError, LaceError, WeightsError
from lace.learning.judges.clip import ClipJudge, load_clip, prompts_of, read_prompts
from lace.learning.judges.examples import ExamplesJudge, Probe, domain_gap
from lace.learning.judges.function import FunctionJudge
from lace.learning.judges.onnx import OnnxJudge, checked_card

YES, TONE, KIND = Discrete("dark"), Continuous("tone", 0, 255), Discrete("kind", ("a", "b", "c"))


def plain(*colours: tuple[int, int, int], size: int = 8) -> np.ndarray:
    """Pictures of one colour each."""
    return np.stack([np.full((size, size, 3), colour, dtype=np.uint8) for colour in colours])


JUDGES = """
import helper

def dark(pictures):
    return pictures.reshape(len(pictures), -1).mean(axis=1) < helper.LIMIT

def broken(pictures):
    return pictures / nothing

def leaving(pictures):
    raise SystemExit(3)

number = 3
"""


def test_functions_are_found_by_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file, with a neighbour that it imports, and in a module of the folder where the command runs."""
    (tmp_path / "mine.py").write_text(JUDGES)
    (tmp_path / "helper.py").write_text("LIMIT = 100\n")
    monkeypatch.chdir(tmp_path)
    for place in (f"{tmp_path}/mine.py:dark", "mine:dark"):
        judge = FunctionJudge.named(place)
        assert judge(plain((0, 0, 0), (200, 200, 200))).tolist() == [True, False]
    with pytest.raises(DataError, match=r"mine.py:broken failed in mine.py, line 8: NameError.*nothing"):
        FunctionJudge.named("mine.py:broken")(plain((0, 0, 0)))
    with pytest.raises(DataError, match=r"mine.py:leaving failed in mine.py, line 11: SystemExit 3"):
        FunctionJudge.named("mine.py:leaving")(plain((0, 0, 0)))
    (tmp_path / "bad.py").write_text("x = 1 / 0\n")
    (tmp_path / "script.py").write_text("import sys\nsys.exit('give a file')\n")
    for place, words in {
        "mine.py:drak": "did you mean 'dark'",
        "mine.py:number": "no function 'number'",
        "nowhere.py:dark": "no file",
        "no.such.module:dark": "cannot be loaded",
        "bad.py:dark": "line 1: ZeroDivisionError",
        "script.py:dark": "line 2: SystemExit give a file",
        "mine.py": "FILE.py:FUNCTION",
    }.items():
        with pytest.raises(DataError, match=words):
            FunctionJudge.named(place)


def test_a_changed_function_is_another_judge(tmp_path: Path) -> None:
    path = tmp_path / "changing.py"
    abouts = []
    for limit in (1, 2, 1):
        path.write_text(f"def judge(pictures):\n    return [len(p) > {limit} for p in pictures]\n")
        import linecache

        linecache.clearcache()
        abouts.append(FunctionJudge.named(f"{path}:judge").about)
    assert abouts[0] == abouts[2] != abouts[1]


# An ONNX file is a tree of numbered fields (protobuf); these few lines write what the tests need.


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def tensor_type(name: str, shape: list[int | str], kind: int = 1) -> bytes:
    sides = b"".join(field(1, field(1, side) if isinstance(side, int) else field(2, side)) for side in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, sides)))


def node(kind: str, inputs: list[str], output: str, attributes: bytes = b"") -> bytes:
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind) + attributes


def ints(name: str, values: list[int]) -> bytes:
    return field(5, field(1, name) + b"".join(field(8, value) for value in values) + field(20, 7))


def network(path: Path, layout: str, batch: int | str = "n", size: int = 4) -> Path:
    """means: the mean of each channel, [N, 3]; red: of the first channel, [N, 1]."""
    shape: list[int | str] = [batch, 3, size, size] if layout == "NCHW" else [batch, size, size, 3]
    axes = [2, 3] if layout == "NCHW" else [1, 2]
    keep = field(5, field(1, "keepdims") + field(3, 0) + field(20, 2))
    weight = field(1, 3) + field(1, 1) + field(2, 1) + field(8, "first") + field(9, struct.pack("<3f", 1, 0, 0))
    nodes = [
        node("ReduceMean", ["picture"], "means", ints("axes", axes) + keep),
        node("MatMul", ["means", "first"], "red"),
    ]
    graph = b"".join(field(1, one) for one in nodes) + field(2, "g") + field(5, weight)
    graph += field(11, tensor_type("picture", shape))
    graph += field(12, tensor_type("means", [batch, 3])) + field(12, tensor_type("red", [batch, 1]))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13)))
    return path


COLOURS = plain((255, 0, 51), (0, 102, 204), (51, 51, 51))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("batch", ["n", 1])
def test_an_onnx_network_sees_what_its_card_says(tmp_path: Path, layout: str, batch: int | str) -> None:
    """Means of plain colours are known: in 0..1, with BGR, with mean and std, in another range, and as numbers."""
    path = network(tmp_path / "m.onnx", layout, batch)
    cases: list[tuple[Any, dict[str, Any], list[Any]]] = [
        (TONE, {"output": "red", "range": [0, 255]}, [255, 0, 51]),
        (TONE, {"output": 1, "colours": "BGR", "range": [0, 255]}, [51, 204, 51]),
        (TONE, {"output": "red", "mean": [0.5, 0, 0], "std": [0.25, 1, 1]}, [2, -2, -1.2]),
        (TONE, {"output": "red", "range": [-1, 1], "scale": 10, "offset": 5}, [15, -5, -1]),
        (YES, {"output": "red", "apply": "sigmoid", "scale": -1}, [1 / (1 + np.e), 0.5, 1 / (1 + np.exp(0.2))]),
        (TONE, {"output": "means", "values": [1, 10, 100]}, [1 + 20, 4 + 80, 0.2 + 2 + 20]),
    ]
    for attribute, card, truth in cases:
        assert OnnxJudge(path, attribute, card)(COLOURS).tolist() == pytest.approx(truth, abs=1e-4), card
    softmax = np.exp(COLOURS[:, 0, 0] / 255)
    softmax /= softmax.sum(axis=1, keepdims=True)
    found = OnnxJudge(path, KIND, {"apply": "softmax", "classes": ["c", "a", "b"]})(COLOURS)
    assert np.allclose(found, softmax[:, [1, 2, 0]], atol=1e-5)


def test_an_onnx_network_is_shown_a_crop(tmp_path: Path) -> None:
    path = network(tmp_path / "m.onnx", "NCHW")
    picture = np.zeros((1, 16, 16, 3), dtype=np.uint8)
    picture[:, 4:8, 8:16] = 255
    card = {"output": "red", "crop": [0.5, 0.25, 1, 0.5]}
    assert OnnxJudge(path, TONE, card)(picture)[0] == pytest.approx(1, abs=1e-5)
    (tmp_path / "m.json").write_text(json.dumps(card))
    assert OnnxJudge(path, TONE)(picture)[0] == pytest.approx(1, abs=1e-5)


def test_onnx_files_and_cards_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = network(tmp_path / "m.onnx", "NCHW")
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    for file, card, words in (
        (tmp_path / "none.onnx", {}, "none.onnx cannot be loaded"),
        (tmp_path / "bad.onnx", {}, "bad.onnx cannot be loaded"),
        (path, {"output": "blue"}, "it has means, red"),
        (path, {"laoyut": "NCHW"}, "'laoyut'"),
        (path, {"values": [1, 2]}, "2 values for 3 outputs"),
        (path, {"size": [9, 9]}, "check its card"),
    ):
        with pytest.raises(DataError, match=words):
            OnnxJudge(file, TONE, card)(COLOURS)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 400), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=2)),
    max_leaves=6,
)
LINES = st.sampled_from(["size", "layout", "range", "mean", "std", "colours", "crop", "output", "scale", "offset"])


@given(card=st.one_of(JSON, st.dictionaries(st.one_of(LINES, st.sampled_from(["apply", "classes", "values"])), JSON)))
@pytest.mark.parametrize("attribute", [YES, TONE, KIND], ids=lambda a: a.name)
def test_any_card_is_whole_or_a_sentence(attribute, card: Any) -> None:
    try:
        assert checked_card(card, attribute).keys() >= {"size", "output", "apply"}
    except DataError as error:
        assert "card" in str(error)


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random CLIP of a few thousand weights, saved as the hub's are, with a tokenizer of letters."""
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer

    folder = tmp_path_factory.mktemp("clip")
    letters = [*"abcdefghijklmnopqrstuvwxyz", *(f"{letter}</w>" for letter in "abcdefghijklmnopqrstuvwxyz")]
    words = ["<|startoftext|>", "<|endoftext|>", *letters]
    (folder / "vocab.json").write_text(json.dumps({word: k for k, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    shared = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**shared, "vocab_size": len(words), "bos_token_id": 0, "eos_token_id": 1, "max_position_embeddings": 77}
    config = CLIPConfig(text_config=text, vision_config={**shared, "image_size": 16, "patch_size": 8}, projection_dim=8)
    CLIPModel(config).save_pretrained(folder)
    return folder


def test_clip_answers_as_the_library_does(tiny_clip: Path) -> None:
    """One prompt a class, pictures of the network's own size: transformers' own forward pass is the truth."""
    prompts = {"no": ["a cat"], "yes": ["a bearded dog"]}
    pictures = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
    judge = ClipJudge(YES, prompts, str(tiny_clip))
    model, tokenizer = load_clip(str(tiny_clip))
    tokens = tokenizer(["a cat", "a bearded dog"], padding=True, return_tensors="pt")
    mean, std = (np.array(v) for v in ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]))
    pixels = torch.tensor((pictures / 255 - mean) / std).permute(0, 3, 1, 2).float()
    truth = model(**tokens, pixel_values=pixels).logits_per_image.softmax(dim=1)
    assert torch.allclose(judge.probabilities(pictures), truth, atol=1e-5)
    assert float((truth[:, 0] - truth[:, 1]).abs().max()) > 1e-3


def test_clip_averages_prompts_and_leaves_doubt_unlabelled(tiny_clip: Path) -> None:
    pictures = np.random.default_rng(1).integers(0, 256, (6, 40, 30, 3), dtype=np.uint8)
    once, twice = (
        ClipJudge(KIND, {"a": ["a cat"] * k, "b": ["a dog"] * k, "c": ["the sea"] * k}, str(tiny_clip)) for k in (1, 2)
    )
    assert torch.allclose(once.probabilities(pictures), twice.probabilities(pictures), atol=1e-6)
    found = once.probabilities(pictures).max(dim=1).values
    level = float(found.median())
    answers = ClipJudge(KIND, once.about["prompts"], str(tiny_clip), threshold=level)(pictures)
    assert np.array_equal(np.isnan(answers).all(axis=1), (found < level).numpy())
    assert 0 < np.isnan(answers[:, 0]).sum() < 6


def test_prompts() -> None:
    """The paper's, a template for each class, and what is no prompt."""
    breeds = read_prompts("afhq-cats", "breeds")
    assert len(breeds) == 16
    assert breeds["maine_coon"] == ["a photo of a maine coon"]
    assert [len(read_prompts("afhq-cats", word)) for word in ("haircolor", "moods", "age")] == [7, 5, 2]
    hair = prompts_of(Discrete("hair", ("light_brown", "red")), ["a cat with {} hair"], None)
    assert hair == {"light_brown": ["a cat with light brown hair"], "red": ["a cat with red hair"]}
    for word in ("breeds", "haircolor", "moods", "age"):
        Schema([Discrete(word, tuple(read_prompts("afhq-cats", word)))])
    for arguments, words in (
        (("afhq-dogs", "breeds"), "did you mean 'afhq-cats'"),
        (("afhq-cats", "bread"), "did you mean 'breeds'"),
    ):
        with pytest.raises(DataError, match=words):
            read_prompts(*arguments)
    with pytest.raises(DataError, match=r"{}"):
        prompts_of(KIND, ["a cat"], None)


@given(content=st.one_of(st.binary(max_size=60), JSON.map(lambda x: json.dumps({"w": x}).encode())))
def test_any_file_of_prompts_is_read_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("prompts") / "p.json"
    path.write_bytes(content)
    try:
        assert len(read_prompts(str(path), "w")) >= 2
    except DataError as error:
        assert len(str(error)) > 20


def test_clip_weights_that_cannot_be_had_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(WeightsError, match="--clip DIR"):
        load_clip(str(tmp_path))
    with pytest.raises(DataError, match="needed for no, yes"):
        ClipJudge(YES, {"a": ["x"], "b": ["y"]}, str(tmp_path))


def mean_colour(pictures: np.ndarray) -> torch.Tensor:
    """Stands in for the backbone: features that are plain to see."""
    return torch.from_numpy(np.asarray(pictures)).float().mean(dim=(1, 2)) / 255


def folder_of(path: Path, colours: np.ndarray) -> Path:
    path.mkdir()
    for k, colour in enumerate(colours):
        Image.fromarray(np.full((6, 6, 3), colour, dtype=np.uint8)).save(path / f"{k}.png")
    return path


def test_examples_teach_a_probe_and_report_their_gap(tmp_path: Path) -> None:
    """Red against blue examples; generated pictures from the same colours, then from others."""
    rng = np.random.default_rng(0)
    red, blue = (rng.integers(0, 120, (30, 3)) + np.eye(3, dtype=int)[k] * 120 for k in (0, 2))
    folders = [folder_of(tmp_path / "yes", red), folder_of(tmp_path / "no", blue)]
    judge = ExamplesJudge(YES, folders, mean_colour)
    alike = plain(
        *(tuple(c) for c in rng.integers(0, 120, (60, 3)) + np.eye(3, dtype=int)[rng.integers(0, 2, 60) * 2] * 120)
    )
    answers = judge(alike)
    assert ((answers[:, 1] > 0.5) == (alike[:, 0, 0, 0] > alike[:, 0, 0, 2])).mean() > 0.9
    notes = judge.notes()
    assert notes["accuracy_on_examples"] > 0.9
    assert 0.3 < notes["domain_gap"] < 0.75
    green = mean_colour(plain(*((10, 200 + k, 10) for k in range(40))))
    assert domain_gap(mean_colour(plain(*(tuple(c) for c in red))), green) > 0.99
    # The examples themselves, drawn again: nothing could be more alike.
    assert domain_gap(green, green) == 0.5


def test_examples_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    full, few = folder_of(tmp_path / "full", np.zeros((12, 3), int)), folder_of(tmp_path / "few", np.zeros((3, 3), int))
    (full / "broken.png").write_bytes(b"no picture")
    for attribute, folders, words in (
        (YES, [full, few], "few holds 3 pictures"),
        (YES, [full], "2 folders of examples, in the order yes, no"),
        (KIND, [full, full], "3 folders of examples, in the order a, b, c"),
        (YES, [full, tmp_path / "none"], "none is no folder"),
        (YES, [full, full], "broken.png cannot be read"),
        (TONE, [full, full], "not numbers"),
    ):
        with pytest.raises(LaceError, match=words):
            ExamplesJudge(attribute, folders, mean_colour)


def test_a_probe_finds_a_known_logistic_curve() -> None:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(4000, 2, generator=rng)
    yes = torch.rand(4000, generator=rng) < (2 * x[:, 0] - 1).sigmoid()
    probe = Probe(x, yes.long(), 2)
    logits = probe(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    odds = logits[:, 1] - logits[:, 0]
    assert odds.tolist() == pytest.approx([-1, 1, -1], abs=0.25)
