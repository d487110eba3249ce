"""argv in, exit code out; one file a command. Heavy rooms are imported where a command needs them, for start-up time."""
