"""The command line: one module per command group, each loaded when it is used."""
