"""The test procedures of draft section 5: generators that yield a Step and are sent what came of it; no I/O, no clock."""
