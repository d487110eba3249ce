"""Virtual time: the reference engine without sockets and without a clock, and the record of what a client would have seen."""
