"""The history of results in words, tables and pictures: entries and checks in, text and HTML out, nothing computed."""
