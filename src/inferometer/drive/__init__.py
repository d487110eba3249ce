"""Sends each request at its intended instant and stamps what comes back where the kernel saw it."""
