"""What differs between engines beside their interfaces: how to recognise one, what it reports, how it loads a model."""
