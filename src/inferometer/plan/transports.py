"""What carries requests and answers, by the names that certificates and `calibrate --transport` use."""

from __future__ import annotations

from typing import Literal, get_args

Transport = Literal[
    "http/1.1",
    "http/1.1+tls",
    "http/2",
    "http/2+tls",
    "grpc",
    "grpc+tls",
    "websocket",
    "websocket+tls",
]
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
