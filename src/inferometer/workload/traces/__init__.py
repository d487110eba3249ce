"""Traces: recorded arrivals and lengths, read row by row, checked as a whole before the first of them is sent."""
