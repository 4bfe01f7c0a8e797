"""How the embedded model is made: behaviour cloning on the bots' own matches, minutes on two cores.

`matches` plays and asks, `words` and `tokenizer` make the vocabulary, `packing` shares what prompts have in common,
`model` and `training` learn, `evaluate` measures on held-out matches, `run` does it all and writes the folder.
"""
