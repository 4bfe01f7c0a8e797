"""The parts of the spectator's screens."""
