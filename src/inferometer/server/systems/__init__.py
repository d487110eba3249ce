"""Reference compound systems: an agent and a retrieval pipeline behind one chat endpoint."""
