"""The wire protocol: its messages, and the client's side of a connection as a state machine."""
