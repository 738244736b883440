"""Attributes: what they are called (schema), what reads them from w (heads), and how heads are made (training)."""
