"""What is written for others to read, as types: summary, test, campaign, comparison, fit, certificate. One definition each.

A document is a tree of frozen structs. Its JSON Schema is generated from them and kept beside them in `schemas/`, so that a
change of a format shows in a diff. Parts that are measured as they are shown come from `measure` unchanged.
"""
