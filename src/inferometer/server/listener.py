"""The listening socket of a server."""

from __future__ import annotations

import socket

from inferometer.server.options import Options


def listening(options: Options) -> socket.socket:
    """It listens, and does not block. Raises OSError where the address cannot be had."""
    found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if options.send_buffer:  # accepted sockets inherit it
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer)
        listener.bind(address)
        listener.listen(socket.SOMAXCONN)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
