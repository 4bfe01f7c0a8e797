"""The terminal spectator: a match, live or recorded, as a screen worth watching (needs textual)."""
