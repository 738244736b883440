"""What a run was, as a JSON object: what ``--json`` prints and ``run.json`` holds."""

from __future__ import annotations

import math
import platform
from typing import Any

import numpy as np
import torch

from . import __version__
from .bank import QUANTILE, Estimate
from .drawing import Drawing
from .model import Explanation, Model
from .planning import Plan
from .samplers.base import Info

__all__ = ["estimate_report", "evidence", "explain_report", "pictures_report", "run_report", "versions"]


def versions() -> dict[str, str]:
    """What computed a result."""
    return {
        "lace": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def device_name(model: Model) -> str:
    return torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else "cpu"


def estimate_report(estimate: Estimate) -> dict[str, Any]:
    return {"estimate": estimate.probability, "interval": [estimate.low, estimate.high], "confidence": 0.95}


def plan_report(plan: Plan) -> dict[str, Any]:
    return {"name": plan.sampler.name, "settings": plan.sampler.settings, "why": plan.why}


def model_report(model: Model) -> dict[str, Any]:
    made = {name: getattr(model.generator, name, None) for name in ("psi", "label")}
    return {"model": model.name, **made, "device": device_name(model)}


def explain_report(sentence: str, explanation: Explanation, model: Model) -> dict[str, Any]:
    return {
        "sentence": sentence,
        "formula": str(explanation.formula),
        "reading": explanation.plan.reading,
        "probability": estimate_report(explanation.probability),
        "terms": explanation.terms,
        "sampler": plan_report(explanation.plan),
        **model_report(model),
    }


def pictures_report(drawing: Drawing) -> list[dict[str, Any]]:
    """Of every picture its address and what the heads say of it."""
    rows: list[dict[str, Any]] = []
    for k in range(len(drawing)):
        row: dict[str, Any] = {"address": str(drawing.addresses[k]) if drawing.addresses else None}
        if drawing.log_prob is not None:
            row["log_prob"] = round(float(drawing.log_prob[k]), 5)
        rows.append({**row, "attributes": drawing.values(k)})
    return rows


def evidence(info: Info) -> Estimate | None:
    """P(c) by the particles' own count; those held to the condition more than once count something else."""
    if info.log_evidence is None or info.settings.get("gamma") != 1:
        return None
    log, error = info.log_evidence
    return Estimate(*(math.exp(log + side * QUANTILE * error) for side in (0, -1, 1)))


def particles_report(info: Info) -> dict[str, Any]:
    """What only particles know."""
    if info.ess is None:
        return {}
    found = evidence(info)
    return {"ess": info.ess, **({"evidence": estimate_report(found)} if found else {})}


def run_report(
    sentence: str, explanation: Explanation, drawing: Drawing, model: Model, seconds: dict[str, float]
) -> dict[str, Any]:
    info = drawing.info
    if info is None:
        raise ValueError("These latents were given, not drawn: there is no run to report.")
    return {
        **explain_report(sentence, explanation, model),
        "n": len(drawing),
        "evaluations": info.evaluations,
        "acceptance": info.acceptance,
        **particles_report(info),
        "seconds": {stage: round(value, 4) for stage, value in seconds.items()},
        "versions": versions(),
        "pictures": pictures_report(drawing),
    }
