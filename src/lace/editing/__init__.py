"""Editing: latents moved to obey one sentence after the other, while the rest of the picture stays as it is."""
