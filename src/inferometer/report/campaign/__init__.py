"""Reports of the draft's tests and of campaigns of several: a JSON document in, text and HTML out, nothing computed."""
