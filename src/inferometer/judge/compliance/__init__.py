"""The draft's compliance statement: its rules as data, a check for each, and what they come to for one test."""
