"""Recorded sessions of agents: steps that wait for each other, what each says, and the formats that they are recorded in."""
