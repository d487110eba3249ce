"""From metrics to verdicts: pure functions, one check each. Values, never sentences: report/ words them."""
