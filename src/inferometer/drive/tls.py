"""TLS over memory buffers: the socket stays ours, so the kernel's stamps of the encrypted bytes stay too."""

from __future__ import annotations

import ssl


class TlsLayer:
    """One TLS session. Encrypted bytes in and out; no socket."""

    __slots__ = ("_incoming", "_object", "_outgoing")

    def __init__(self, context: ssl.SSLContext, server_name: str | None) -> None:
        """A client's session with a server of that name; None: the server's side, of a context that is for servers."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )

    def handshake(self) -> bool:
        """Go on with the handshake; True once it is done. Raises ssl.SSLError."""
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    @property
    def peer_certificate(self) -> bytes | None:
        """The other side's certificate in DER; known once the handshake is done."""
        return self._object.getpeercert(binary_form=True)

    @property
    def protocol(self) -> str | None:
        """What the two sides have agreed on by ALPN; known once the handshake is done."""
        return self._object.selected_alpn_protocol()

    def received(self, data: bytes) -> None:
        """Encrypted bytes came from the peer."""
        self._incoming.write(data)

    def decrypt(self) -> bytes:
        """All plain bytes that are complete. Raises ssl.SSLError."""
        pieces: list[bytes] = []
        try:
            while piece := self._object.read(65536):
                pieces.append(piece)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass  # nothing more yet, or the peer said goodbye: its FIN follows
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def encrypt(self, data: bytes) -> bytes:
        """Return what must go onto the wire for `data`."""
        if data:
            self._object.write(data)
        return self._outgoing.read()

    def pending_output(self) -> bytes:
        """What the session itself wants sent (handshake messages)."""
        return self._outgoing.read()
