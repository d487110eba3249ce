"""The instrument beside the tools that others measure with: one server, one core for each client, one truth."""
