"""Small networks are quickest on one thread."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread(two_threads: None) -> None:
    torch.set_num_threads(1)
