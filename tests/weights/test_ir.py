"""Reading OpenVINO IRs as data: damaged ones end in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lace.errors import WeightsError
from lace.weights.ir import IR

XML = """<net><layers>
<layer id="0" name="x" type="Parameter"/>
<layer id="1" name="weight" type="Const"><data element_type="f32" shape="2, 3" offset="4" size="24"/></layer>
<layer id="2" name="product" type="MatMul"/>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
</edges></net>"""


def write(folder: Path, xml: str, data: bytes) -> Path:
    (folder / "net.xml").write_text(xml)
    (folder / "net.bin").write_bytes(data)
    return folder / "net.xml"


def test_constants_are_found_by_name_and_by_use(tmp_path: Path) -> None:
    data = b"".join(int(k).to_bytes(4, "little") for k in (0, 0x3F800000, 0x40000000, 0, 0, 0, 0x40400000))
    ir = IR.read(write(tmp_path, XML, data))
    assert ir.named["weight"].tolist() == [[1, 2, 0], [0, 0, 3]]
    assert ir.inputs["MatMul"][0] is ir.named["weight"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.integers(0, len(XML) - 1),
    damage=st.text(alphabet='<>/"=0123456789-abcfis', max_size=6),
    length=st.integers(0, 40),
)
def test_damaged_files_end_in_a_sentence(tmp_path: Path, place: int, damage: str, length: int) -> None:
    path = write(tmp_path, XML[:place] + damage + XML[place + len(damage) :], bytes(length))
    try:
        IR.read(path)
    except WeightsError:
        return


def test_a_constant_beyond_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"net\.xml"):
        IR.read(write(tmp_path, XML, bytes(20)))
