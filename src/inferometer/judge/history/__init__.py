"""Results over time: whether the newest ones are worse than those before, and where levels changed."""
