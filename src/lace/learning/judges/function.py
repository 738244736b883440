"""A Python function as a judge, from a program or by its name: FILE.py:FUNCTION or package.module:function."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ...attributes.schema import nearest
from ...errors import DataError, LaceError
from .base import Judge, Pictures

__all__ = ["FunctionJudge"]


class FunctionJudge(Judge):
    """Asks ``fn``; its errors become sentences that name the line."""

    def __init__(self, fn: Callable[[Any], Any], name: str = "") -> None:
        self._fn = fn
        self.name = name or getattr(fn, "__qualname__", type(fn).__name__)
        self.about = {"kind": "function", "name": self.name, "source": fingerprint(fn)}

    @classmethod
    def named(cls, place: str) -> FunctionJudge:
        """The function of a file or of a module."""
        source, _, name = place.rpartition(":")
        if not source or not name:
            raise DataError(f"'{place}' names no judge; write FILE.py:FUNCTION or package.module:function.")
        module = _module(source)
        fn = getattr(module, name, None)
        if not callable(fn):
            known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
            raise DataError(f"{source} has no function '{name}'{nearest(name, known) if known else '.'}")
        return cls(fn, f"{Path(source).name}:{name}")

    def __call__(self, pictures: Pictures) -> Any:
        try:
            return self._fn(pictures)
        except LaceError:
            raise
        # A judge that calls exit() would end the command without a word.
        except (Exception, SystemExit) as error:
            raise DataError(f"The judge {self.name} failed {_where(error)}: {_said(error)}.") from error


def fingerprint(fn: Callable[..., Any]) -> str:
    """A name that changes with the function's text, where Python knows it."""
    try:
        text = inspect.getsource(fn)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _module(source: str) -> ModuleType:
    path = Path(source)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise DataError(f"There is no file {source}; a judge is FILE.py:FUNCTION or package.module:function.")
    # A judge may import what lies beside it, as a program that is run may.
    sys.path.insert(0, str(path.resolve().parent) if is_file else os.getcwd())
    try:
        if not is_file:
            return importlib.import_module(source)
        spec = importlib.util.spec_from_file_location(f"lace_judge_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise DataError(f"{source} cannot be loaded as Python.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except LaceError:
        raise
    except (Exception, SystemExit) as error:
        raise DataError(f"{source} cannot be loaded {_where(error)}: {_said(error)}.") from error
    finally:
        sys.path.pop(0)


def _where(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"in {Path(frame.filename).name}, line {frame.lineno}"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__} {error}".strip().rstrip(".")
