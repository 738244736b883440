from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import lace
from lace.editing.subset import LAYERS, layers_of, selected


def test_chains_and_undo(plain: lace.Model) -> None:
    album = plain.edit("0:3", ["tall=2", "wide=-1"])
    again = plain.edit("0:3").then("tall=2").then("wide=-1")
    assert torch.equal(album.drawings[2].z, again.drawings[2].z)
    back = album.undo()
    assert len(back) == 2
    assert torch.equal(back.then("wide=-1").drawings[2].z, album.drawings[2].z)
    assert torch.equal(album.undo(2).drawings[0].z, plain.at(["0:3"]).z)
    with pytest.raises(lace.ValueRangeError, match="3 edits"):
        album.undo(3)


def test_later_edits_keep_what_earlier_ones_asked(plain: lace.Model) -> None:
    album = plain.edit("0:3", ["tall=2", "wide=-2", "round"], amount=0.0)
    last = album.drawings[-1].values(0)
    assert last["tall"] == pytest.approx(2, abs=0.3)
    assert last["wide"] == pytest.approx(-2, abs=0.3)
    assert last["round"] > 0.9
    (before, after) = album.changes()[0]["tall"]
    assert before == plain.at(["0:3"]).values(0)["tall"]
    assert after == album.drawings[1].values(0)["tall"]


def test_starts_of_every_kind_are_one(plain: lace.Model) -> None:
    drawing = plain.at(["0:3", "0:4"])
    ends = [
        plain.edit(start, "tall=2", space=space, amount=0.0).drawings[1].z
        for start, space in ((["0:3", "0:4"], "z"), (drawing, "z"), (drawing.z, "z"), (drawing.w, "w"))
    ]
    for end in ends[1:]:
        assert torch.allclose(end, ends[0], atol=5e-3)
    for start, space in ((torch.zeros(2, 5), "z"), (torch.zeros(2, 5), "w"), (torch.zeros(6), "z")):
        with pytest.raises(lace.ValueRangeError, match=r"does not fit|are \[n, 6\]"):
            plain.edit(start, "tall=2", space=space)
    with pytest.raises(lace.UnknownNameError, match="space"):
        plain.edit(drawing.z, "tall=2", space="q")


def test_methods_and_their_knobs(plain: lace.Model) -> None:
    with pytest.raises(lace.ConditionError, match="no amount"):
        plain.edit("0:3", "tall=2", method="paper", amount=0.5)
    with pytest.raises(lace.ConditionError, match="temperature"):
        plain.edit("0:3", "tall=2", temperature=0.5)
    with pytest.raises(lace.ConditionError, match="neighbourhood and paper"):
        plain.edit("0:3", "tall=2", method="magic")


def test_the_papers_subsets(ffhq: lace.Model) -> None:
    """Two style inputs of each of this generator's blocks, and one more, stand for the two layers of a resolution."""
    assert layers_of(ffhq["smile & glasses"]) == LAYERS["smile"] | LAYERS["glasses"]
    assert layers_of(ffhq["smile & hat"]) is None
    before, after = torch.zeros(1, 512), torch.ones(1, 512)
    for word, styles in (("smile", (6, 7, 8)), ("yaw", range(6)), ("glasses", range(9))):
        shown = selected(ffhq.generator, before, after, LAYERS[word])
        assert sorted(shown[0, :, 0].nonzero()[:, 0].tolist()) == sorted(styles)


def test_a_subset_leaves_the_other_styles_as_they_were(ffhq: lace.Model) -> None:
    album = ffhq.edit("0:100", ["yaw=20", "age=60"], subset=True, amount=0.0)
    start, turned, aged = (drawing.w for drawing in album.drawings)
    layers = torch.tensor(ffhq.generator.style_layers)
    assert torch.equal(turned[0, layers > 3], start.expand(23, -1)[layers > 3])
    assert not torch.equal(turned[0, 0], start[0])
    untouched = (layers < 4) | (layers > 7)
    assert torch.equal(aged[0, untouched], turned[0, untouched])
    assert not torch.allclose(aged[0, layers == 5], turned[0, layers == 5])


def test_w_from_anywhere_is_the_picture_it_was(ffhq: lace.Model) -> None:
    """A w that no z gives, also one with a row for each style: before any edit it is drawn to the last bit."""
    own = ffhq.at(["0:7"]).w
    noise = 0.05 * torch.randn(1, 23, 512, generator=torch.Generator().manual_seed(0))
    for w in (own + noise[:, 0], own[:, None] + noise):
        album = ffhq.edit(w, "glasses", space="w", amount=0.0)
        assert torch.equal(album.drawings[0].w, w)
        assert album.drawings[1].w.shape == w.shape
        moved = album.drawings[1].w - w
        # The offset goes along: what changes is the same for every style.
        assert torch.allclose(moved, moved.reshape(-1, 512)[:1].expand_as(moved), atol=1e-4)
        assert album.drawings[1].values(0)["glasses"] > 0.9


def test_an_offset_is_not_forgotten(ffhq: lace.Model) -> None:
    """Editing that goes on from a drawing still has what its z does not explain."""
    w = ffhq.at(["0:7"]).w + 0.05 * torch.randn(1, 512, generator=torch.Generator().manual_seed(0))
    offsets = []
    drawing = ffhq.edit(w, space="w").drawings[0]
    for sentence in ("glasses", "hat"):
        offsets.append(drawing.w - ffhq.generator.to_w(drawing.z))
        drawing = ffhq.edit(drawing, sentence, amount=0.0).drawings[1]
    offsets.append(drawing.w - ffhq.generator.to_w(drawing.z))
    assert offsets[0].norm() > 0.3
    assert torch.allclose(offsets[1], offsets[0], atol=1e-4)
    assert torch.allclose(offsets[2], offsets[0], atol=1e-4)


def test_the_generators_own_w_finds_its_z(ffhq: lace.Model) -> None:
    drawing = ffhq.at(["0:7", "0:8"])
    found = ffhq.edit(drawing.w, space="w").drawings[0].z
    assert torch.nn.functional.cosine_similarity(found, drawing.z).min() > 0.95


def test_pictures_are_made_once(plain: lace.Model) -> None:
    album = plain.edit(["0:1", "0:2"], "tall=2").pictures()
    assert album.images.shape == (2, 2, 8, 8, 3)
    assert np.array_equal(album.images[0], plain.edit(["0:1", "0:2"]).images[0])
    assert album.then("wide=1").pictures().drawings[0].images is album.drawings[0].images


def test_an_edited_drawing_goes_on_where_it_is(plain: lace.Model) -> None:
    album = plain.edit("0:3", "tall=2")
    resumed = plain.edit(album.drawings[1])
    assert torch.equal(resumed.drawings[0].w, album.drawings[1].w)
    assert dataclasses.replace(album.drawings[1]).is_edited
