"""Sentences: their text (language), their tree (formula), and what they mean.

``probability`` is the default reading, ``energy`` the paper's; ``margin`` says how clearly a draw obeys.
"""
