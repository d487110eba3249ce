"""Whether the model is in memory: loaded, loading, or not there, and until when it stays. Pure: time is told.

| what happens                               | then                                                                     |
| ------------------------------------------ | ------------------------------------------------------------------------ |
| a request, and the model is there          | it begins at once, or when the load under way is done                    |
| a request, and the model is not there      | a load begins; the request begins when it is done                        |
| a request, and others still wait to begin  | it begins right behind them, so that it does not take their place        |
| the last request under way ends            | the model stays for the latest `keep` asked for, and goes if that was 0  |
| `unload`                                   | it goes now, or when the last request under way ends                     |

A server that loads its model when it starts (`start`) says that it is `starting` until the model is there.

A load takes `load_ns`. The engine knows nothing of this: it is given a request once the model is there. So it is empty when
those who waited begin, and a queue limit that was kept among them is kept by it.
"""

from __future__ import annotations

FOREVER = -1
"""A `keep` without end, in place of ns."""


class Residence:
    """One model. `now` is the latest instant it was told (ns); it starts `loaded` or not, and stays for ever unless asked."""

    def __init__(self, load_ns: int = 0, *, loaded: bool = True) -> None:
        self.load_ns = load_ns
        self.now = 0
        self._keep = FOREVER
        self._users = 0
        self._ready = 0  # when the latest load is or was done
        self._begun = True  # those who waited for it have begun
        self._until: int | None = None if loaded else 0
        self._started = 0  # when the load at the start is or was done

    def tell(self, now: int) -> None:
        """Time has come to `now`; earlier instants are ignored."""
        self.now = max(self.now, now)

    @property
    def loaded(self) -> bool:
        """The model is in memory, or on its way there."""
        return self._users > 0 or self._until is None or self.now < self._until

    @property
    def expires(self) -> int | None:
        """When it goes if nothing more is asked of it; None for never."""
        if self._users:
            return None if self._keep == FOREVER else self.now + self._keep
        return self._until

    def begin(self, keep: int | None = None, *, load: bool = True) -> int:
        """A request begins; how long it waits for the model (ns). `keep`: how long that is to stay afterwards (ns, or
        FOREVER); None leaves that as it was. Without `load` the request does not need it, and does not wait.
        """
        wait = self._wait() if load else 0
        self._users += 1
        if keep is not None:
            self._keep = keep
        return wait

    def let_in(self, at: int) -> None:
        """Those who waited until `at` have begun."""
        self._begun = self._begun or self._ready <= at

    def end(self) -> None:
        """A request that had begun has ended, one way or another."""
        self._users -= 1
        self._rest()

    def load(self) -> None:
        """Load it if it is not there, and keep it for ever."""
        self._load()
        self._keep = FOREVER
        self._rest()

    def start(self) -> None:
        """Load it before anybody asks for it, as a server's start."""
        self.load()
        self._started = self._ready

    @property
    def starting(self) -> bool:
        """The load that `start` began is under way."""
        return self.now < self._started

    def unload(self) -> None:
        """Let it go as soon as nobody uses it. The next load is kept as long as that request asks, else for ever."""
        self._keep = 0
        self._rest()

    def _wait(self) -> int:
        self._load()
        if self.now < self._ready:
            return self._ready - self.now
        self._begun = self._begun or not self._users  # without users, nobody waited
        return 0 if self._begun else 1

    def _load(self) -> None:
        if not self.loaded:
            self._ready = self.now + self.load_ns
            self._begun = not self.load_ns
            self._keep = FOREVER

    def _rest(self) -> None:
        if not self._users:
            self._until = None if self._keep == FOREVER else self.now + self._keep
