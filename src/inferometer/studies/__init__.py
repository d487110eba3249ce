"""What takes many runs: campaigns of the draft's tests, comparisons, calibration, and fitting an engine's model to a run."""
