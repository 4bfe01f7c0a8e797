"""evoke-arena: pure rules. No I/O, no clock, no asyncio, no torch, no global randomness."""
