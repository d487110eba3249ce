"""Measurements of the instrument itself, against a server and a floor written in C. They inform; tests decide."""
