"""Statistics of a comparison: whether systems differ, and by how much, given runs of each."""
