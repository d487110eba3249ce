"""The model of a serving engine: pure, in virtual time. docs/engine.md has its laws, formulas and settings."""
