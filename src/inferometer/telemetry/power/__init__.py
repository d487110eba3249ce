"""Meters of power and energy, one file each; `meters.py` opens them by name (docs/power-and-energy.md)."""
