"""evoke-arena: the record of a match: write, read, verify, export."""
