"""Sans-IO codecs: bytes in, events out. No sockets, no clock, and no import of any other room."""
