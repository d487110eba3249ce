"""What each test of the draft answers, held against a known truth in simulation: one file a test.

    python -m benchmarks headlines [--quick]             # tables: 20 seeds, or 2, of each test; hours, or minutes
    python -m benchmarks.headlines TEST PRESET SEED...   # a line of JSON a search: truth, answer, interval, verdict

The truth is a closed form where there is one, else the mean of long runs of the same engine under the same load with seeds of
their own; its standard error stands beside it. A further test is one more file with a HEADLINE, named in `tests.py`.
"""
