"""The shared policy: one language model behind many seats."""
