"""The conditional task generator: from what was attempted to the tasks that come next, at the edge of ability.

rows.py        what the generator reads: attempts, proposed tasks, and the `Memory` that keeps them
config.py      every parameter, from a TOML file whose hash is recorded
curve.py       difficulty as levels; how success depends on it, by skill and by dimension
strategies.py  bottleneck, coverage, curve, random: which skill, which difficulty, which parent
makers.py      from a request to a task: drawn vectors, proven grid tasks, whatever a policy proposes
generator.py   the mix, the cap, the band, the packs of review, duplicates, retries
metrics.py     success apart (fixed, new, old), diversity, histograms
shift.py       "the tasks got harder" told from "the agent got worse"
alerts.py      what should wake somebody
switch.py      which attempts may train, and quarantine
learners.py    simulated learners whose skill is known
truth.py       experiments with them: does the loop do what it claims?
"""
