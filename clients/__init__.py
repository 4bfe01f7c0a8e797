"""evoke-arena: the protocol, and what a person or a foreign program runs."""
