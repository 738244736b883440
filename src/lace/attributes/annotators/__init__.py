"""Judges of pictures: they label what a generator drew, and heads learn to foresee them from w.

Every annotator takes faces as a tensor [N, 3, H, W] in [-1, 1] in FFHQ's framing and returns tensors with N rows.
"""
