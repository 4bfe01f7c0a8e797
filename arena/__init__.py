"""evoke-arena: hosting and the command line."""
