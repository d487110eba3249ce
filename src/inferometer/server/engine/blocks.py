"""The paged KV cache: N blocks of B tokens, shared by requests whose prompts begin alike.

A block is in one of four states, and the four counts add up to N at all times:

| state  | holds                                                    | leaves it when                            |
| ------ | -------------------------------------------------------- | ----------------------------------------- |
| free   | nothing                                                  | a request takes it                        |
| own    | tokens of one request                                    | the request ends, or publishes the block  |
| shared | a known piece of prompt, in use by one request or more   | the last of them ends: idle               |
| idle   | a known piece of prompt, in use by none                  | a request wants it again, or needs room   |

A full block of a prompt is known by the hash of its tokens and of all before them, so equal hashes mean equal prefixes. Room is
made by evicting the idle block that was used longest ago; within one request, the end of the prompt goes before its beginning.
Blocks are counted, not numbered: which one holds what makes no difference to time.

A pool can be given another size while it is in use. A larger one has its new blocks at once. A smaller one gives up free
blocks, then idle ones, longest unused first; what requests hold beyond its size goes when they give it back. So there are
always max(size, blocks in use) of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


def chain(ids: Sequence[int], block_tokens: int) -> tuple[int, ...]:
    """The hash of each full block of a prompt, each over its own tokens and the hash before it."""
    found = []
    before = 0
    for start in range(0, len(ids) - block_tokens + 1, block_tokens):
        before = hash((before, *ids[start : start + block_tokens]))
        found.append(before)
    return tuple(found)


class Lease:
    """The blocks one request holds: `own`, a number, and `shared`, by hash."""

    __slots__ = ("own", "shared")

    def __init__(self, shared: list[int], own: int) -> None:
        self.shared = shared
        self.own = own

    @property
    def blocks(self) -> int:
        """How many it holds."""
        return self.own + len(self.shared)


class BlockPool:
    """All blocks of one engine."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self._size = blocks  # more than this only while requests hold them
        self.own = 0
        self._users: dict[int, int] = {}  # hash of a known block: how many requests use it
        self._idle: OrderedDict[int, None] = OrderedDict()  # known blocks without users, longest unused first

    @property
    def shared(self) -> int:
        """Known blocks in use."""
        return len(self._users) - len(self._idle)

    @property
    def idle(self) -> int:
        """Known blocks that nobody uses."""
        return len(self._idle)

    @property
    def used(self) -> int:
        """Blocks that requests hold."""
        return self.own + self.shared

    @property
    def free(self) -> int:
        """Blocks that hold nothing."""
        return self.blocks - self.own - len(self._users)

    def match(self, hashes: Sequence[int]) -> int:
        """How many of the first blocks are known."""
        for n, known in enumerate(hashes):
            if known not in self._users:
                return n
        return len(hashes)

    def take(self, known: Sequence[int], own: int) -> Lease | None:
        """A lease on known blocks and `own` fresh ones; None, and nothing changed, where there is no room."""
        idle = self._idle
        if own > self.free + len(idle) - sum(1 for one in known if one in idle):
            return None
        for one in known:
            self._users[one] += 1
            idle.pop(one, None)
        self._clear(own)
        self.own += own
        return Lease(list(known), own)

    def grow(self, lease: Lease, blocks: int) -> bool:
        """Give a lease more fresh blocks; False, and nothing changed, where there is no room."""
        if blocks > self.free + len(self._idle):
            return False
        self._clear(blocks)
        self.own += blocks
        lease.own += blocks
        return True

    def publish(self, lease: Lease, hashes: Sequence[int]) -> None:
        """Blocks the lease filled are known from now on. One that somebody else published first stays its own."""
        for one in hashes:
            if one not in self._users:
                self._users[one] = 1
                lease.shared.append(one)
                lease.own -= 1
                self.own -= 1

    def release(self, lease: Lease) -> None:
        """Take everything back."""
        for one in reversed(lease.shared):
            self._users[one] -= 1
            if not self._users[one]:
                self._idle[one] = None
        self.own -= lease.own
        lease.own = 0
        lease.shared = []
        self._give_up()

    def resize(self, blocks: int) -> None:
        """Have so many from now on, or, as long as more are in use, no more than these."""
        self._size = blocks
        self.blocks = max(self.blocks, blocks)
        self._give_up()

    @property
    def excess(self) -> bool:
        """Requests hold more than the pool is to have."""
        return self.blocks > self._size

    def flush(self) -> None:
        """Forget what nobody uses."""
        for one in self._idle:
            del self._users[one]
        self._idle.clear()

    def _give_up(self) -> None:
        """Part with blocks that are too many and that nobody uses."""
        surplus = self.blocks - self._size
        if surplus > 0:
            self._clear(min(surplus, self.free + self.idle))
            self.blocks -= min(surplus, self.free)

    def _clear(self, blocks: int) -> None:
        """Evict until so many are free. There must be enough idle ones."""
        for _ in range(blocks - self.free):
            one, _ = self._idle.popitem(last=False)
            del self._users[one]
