# SPDX-License-Identifier: MIT
"""Room made by itself: gpreemptd watches the queues and decides; this is its handle in Python."""
from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Union

from .daemon import Daemon, Events, Job, Latency, Policy
from .server import QUICK, Server

Selector = Union[int, str]


@dataclass(frozen=True)
class SchedulerStatistics:
    preemptions: int
    inversions: int  # online work that waited for offline
    resolved: int  # and then did not
    online: int  # processes
    offline: int
    held: int  # now
    detection: Latency  # from work seen, or a hint, to the decision
    suspend: Latency  # from the decision until done
    resume: Latency
    trips: int  # preemptions that failed: that GPU is left alone then
    jobs: List[Job]
    modelled: bool  # times come from a model and must be shown as such


class GPreemptScheduler:
    """Who is online, who is offline; everything else is decided by gpreemptd.

    The policies are the daemon's own, in C, the same as in the simulator and in the kernel
    extension: nothing is decided in Python. GPreemptScheduler() talks to the daemon of this
    machine; GPreemptScheduler.start() runs one of its own until close().
    """

    def __init__(self, socket: Optional[str] = None) -> None:
        self.server: Optional[Server] = None
        self.daemon = Daemon(socket)

    @classmethod
    def start(cls, device: str = 'model', policy: str = 'priority',
              config: str = QUICK) -> 'GPreemptScheduler':
        """A daemon of its own, on any device; on 'kfd' and 'nvrm' that needs its rights."""
        server = Server(device, config)
        try:
            scheduler = cls(server.socket)
            scheduler.server = server
            scheduler.set_policy(policy)
            return scheduler
        except BaseException:
            server.close()
            raise

    # ---- who is who ----

    def register_online(self, selector: Selector, *, priority: Optional[int] = None,
                        critical: bool = True, target_us: int = 0) -> int:
        """A pid and its descendants, or another selector of gpreempt-class(1), also before it uses
        a GPU; how many processes were classed now. critical: room is made for it at once, not when
        it has waited."""
        return self.daemon.set_class(selector, 'online', priority=priority, critical=critical,
                                     target_us=target_us)

    def register_offline(self, selector: Selector, *, priority: Optional[int] = None,
                         lazy: bool = False) -> int:
        """lazy: is attached only when somebody waits for it."""
        return self.daemon.set_class(selector, 'offline', priority=priority, lazy=lazy)

    # ---- what is going on ----

    def statistics(self) -> SchedulerStatistics:
        s = self.daemon.status()
        return SchedulerStatistics(s.preemptions, s.inversions, s.resolved, s.online, s.offline,
                                   s.held, s.detection, s.suspend, s.resume, s.trips,
                                   self.daemon.jobs(), s.modelled)

    def job(self, pid: int) -> Optional[Job]:
        """None: it uses no GPU, or is not known yet."""
        return next((j for j in self.daemon.jobs() if j.pid == pid), None)

    def events(self, timeout: Optional[float] = None) -> Events:
        return self.daemon.events(timeout)

    def policy(self) -> Policy:
        return self.daemon.policy()

    # ---- what can be asked ----

    def set_policy(self, name: str) -> None:
        self.daemon.set_policy(name)

    def hint(self, pid: int, ahead: float = 0, lasts: float = 0) -> None:
        """Online work of a process comes in so many seconds, and takes so many."""
        self.daemon.hint(pid, ahead, lasts)

    def pause(self) -> None:
        """Lets go of everything and manages nobody."""
        self.daemon.pause()

    def continue_(self) -> None:
        self.daemon.continue_()

    def close(self) -> None:
        """A daemon of its own ends, and nothing is held any more; another goes on."""
        self.daemon.close()
        if self.server:
            self.server.close()

    def __enter__(self) -> 'GPreemptScheduler':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
