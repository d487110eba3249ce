"""Words, tables and pages for what was measured and judged: renders, never computes."""
