"""What will be done: a frozen, hashed description of one measurement. Pure values; no clock, no socket."""
