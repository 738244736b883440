"""Frozen generators of pictures, behind one protocol of three things (see :mod:`lace.generators.base`)."""
