"""Learning from matches: trajectories, advantages, the loss, the learner and its checkpoints."""
