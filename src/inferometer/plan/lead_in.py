"""The lead-in of a closed loop. Apart from the schema, since a worker needs it and is to start without the schema's library."""

from __future__ import annotations

LEAD_PER_SLOT = 2
"""Requests of the lead-in for each slot: one that meets the burst of the start, and one behind it."""
