"""The layered evaluator: rules, an automaton, a model and a person, each with its evidence."""
