"""The reference engine: a model of a serving engine, run in real time behind sockets, that logs what it truly did."""
