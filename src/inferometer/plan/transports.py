"""What carries requests and answers, by the names that certificates and `calibrate --transport` use."""

from __future__ import annotations

from typing import Literal, get_args

Http = Literal["http/1.1", "http/1.1+tls", "http/2", "http/2+tls"]
Transport = Literal[Http, "grpc", "grpc+tls", "websocket", "websocket+tls"]
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
CALIBRATED: tuple[Http, ...] = get_args(Http)
"""For those a calibration can be made. A run over another one has no certificate, and its report says so."""
