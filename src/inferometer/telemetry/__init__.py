"""What can be told about the machines and the server beside the load itself."""
