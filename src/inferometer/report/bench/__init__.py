"""Reports of an engine benchmark."""
