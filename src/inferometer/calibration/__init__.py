"""How far the instrument's numbers are from the truth on this machine, and up to which load they hold."""
