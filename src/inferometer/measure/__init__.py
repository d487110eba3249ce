"""From the journal to metric columns: pure functions over arrays, the formula above each. No I/O, no clock."""
