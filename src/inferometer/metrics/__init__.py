"""The vocabulary of results: each metric and each rate is one entry, and all that speak of them read it here."""
