"""How a model is taught a new word.

    draws -> pictures -> judges -> answers -> journal -> lesson -> a file of heads that the model reads from then on

draws says which latents are labelled, rounds draws more of what is rare and says how much each label counts, judges
look at pictures, journal keeps what they say, lesson trains a head and decides whether the word can be read at all.
"""
