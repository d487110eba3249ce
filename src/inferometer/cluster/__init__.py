"""Many load machines as one instrument."""
