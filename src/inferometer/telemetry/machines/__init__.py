"""What a machine does while a load runs: this one, read beside the scrapes, and others by their exporters."""
