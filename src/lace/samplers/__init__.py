"""Samplers: one protocol (base), one file an algorithm; they ask a target for probabilities and know no sentence."""
