"""Inferometer: a measuring instrument for LLM serving systems that proves its own numbers."""

__version__ = "0.1.0"
