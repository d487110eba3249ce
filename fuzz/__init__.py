"""Fuzzers of everything that reads what others wrote: one target a file, its corpus in corpus/ (README.md)."""
