"""evoke-arena: everything that decides, remembers, judges, is credited and learns."""
