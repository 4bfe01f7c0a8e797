"""Many task worlds at once, in NumPy: for bulk data, curricula and screening. The rules stay in `games.tasks`."""
