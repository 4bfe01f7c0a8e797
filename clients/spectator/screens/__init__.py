"""The spectator's screens."""
