"""The bridge between a live market and Slurm: it looks at both sides, again and again, and mends the difference.

The bridge keeps nothing that matters: what is to be done follows from the two lists alone (`slurm_pairs.decide`),
every call to the market has a key of its own, and the next look shows the effect of a request to Slurm. It can be
killed at any moment and started again, and so can the controller and the service.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from marketsched.live.slurm import Slurm, SlurmError
from marketsched.live.slurm_actions import NOT_FOUND, ROUND_S, BridgeRules, RoundClock, SlurmActions
from marketsched.live.slurm_demand import SlurmNode
from marketsched.live.slurm_nodes import gpu_types, nodes_by_name
from marketsched.live.slurm_pairs import decide
from marketsched.live.slurm_plugin import write_announced
from marketsched.live.slurm_shapes import MEMORY, slurm_shapes
from marketsched.live.slurm_sides import NONE, Decision, MarketJob, View, name_of, successor
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError

if TYPE_CHECKING:
    from marketsched.live.client import LiveClient  # the extra `live`

OPEN = ("submitted", "arrived", "running")  # states of jobs that are not gone
CGROUP = "proctrack/cgroup"
CONSTRAINED = {
    "SelectType": "cons_tres", "TaskPlugin": "task/cgroup", "ConstrainCores": "yes", "ConstrainDevices": "yes",
}  # fmt: skip
LOOKS = 3  # in a row at which Slurm does not know a running job, before it counts as lost


class SlurmBridge:
    """One bridge, with an operator's token of the market and Slurm's commands as an operator of Slurm.

    ``say`` takes a line for each action that was taken or refused; ``taken`` counts those that were taken, by kind.
    """

    def __init__(
        self,
        market: LiveClient,
        slurm: Slurm,
        rules: BridgeRules | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.market, self.slurm, self.rules, self.say = market, slurm, rules or BridgeRules(), say
        self.taken: dict[str, int] = {}
        self._gone: dict[str, MarketJob] = {}  # jobs that Slurm lists, and the market is done with
        self._remark: tuple[int, tuple[str, ...], tuple[str, ...]] | None = None
        self._actions = SlurmActions(market, slurm, self.rules)
        self._short_since: float | None = None  # of nodes
        self._missing: dict[str, int] = {}  # looks in a row without them, by job
        self._checked = False
        self._cluster: dict[str, Any] | None = None  # of several kinds, and then what `check_market` finds of it
        self._nodes: dict[str, SlurmNode] = {}
        self._types: dict[str, frozenset[str]] = {}
        self._qos: tuple[str, str] | None = None

    def check_market(self) -> None:
        """Raise InvalidParameterError if the token is an owner's, or the market sells other nodes than Slurm has.

        What the bridge does not see it takes for something that nobody announced, and cancels. So it has to see all
        jobs of the market, and a partition that is there.
        """
        market = self.market.market()
        if "last_event" not in market:  # owners see their own jobs alone
            raise InvalidParameterError("the token is an owner's, which does not see all jobs", legal="an operator's")
        if not self.slurm.node_states(self.rules.partition):
            there = ", ".join(self.slurm.partitions()) or "none"
            raise InvalidParameterError(place="partition", value=self.rules.partition, legal=f"one of Slurm's: {there}")
        self._cluster, self._checked = market.get("cluster"), True
        if self.rules.qos is not None and "classes" in market:
            self._qos = self.rules.qos
            for place, name in zip(("regular", "free"), self._qos, strict=True):
                if name not in (known := self.slurm.qos_names()):
                    legal = f"{name!r} beside {', '.join(known) or 'none'} (docs/live-slurm.md), or --no-qos"
                    raise InvalidParameterError(f"QOS of {place} nodes is not in Slurm's accounting", legal=legal)
        if self._cluster is not None:
            nodes = self.slurm.nodes(self.rules.partition)
            self._nodes = nodes_by_name(self._cluster, nodes, self.rules.pools, self.rules.partition)
            self._types = gpu_types(self._nodes, self._cluster)
            self._actions.places = {place: node.name for place, node in self._nodes.items()}

    def check_cluster(self) -> None:
        """Raise InvalidParameterError unless Slurm ends every process of a job when the job ends.

        Where the market sells CPUs, memory and devices, it has to hold jobs to what they booked as well.
        """
        found = self.slurm.configuration()
        if (kind := found.get("ProctrackType", "none")) != CGROUP:
            legal = f"{CGROUP}: with others a process that leaves its session outlives its job, and pays nothing"
            raise InvalidParameterError(place="ProctrackType", value=kind, legal=legal)
        for place, wanted in self._needed().items():
            if wanted not in (seen := found.get(place, "none")).lower():
                legal = f"{wanted}, as the market sells CPUs, memory and devices: else jobs take more than they booked"
                raise InvalidParameterError(place=place, value=seen, legal=legal)

    def _needed(self) -> dict[str, str]:
        """Return what has to stand in Slurm's configuration where a cluster of several kinds is sold."""
        if self._cluster is None:
            return {}
        memory = {"SelectTypeParameters": "memory", "ConstrainRAMSpace": "yes"}
        return {**CONSTRAINED, **(memory if MEMORY in self._cluster["resources"] else {})}

    def run(self, wake: threading.Event, stop: threading.Event, interval: float = 1.0) -> None:
        """Look and mend until ``stop`` is set, every ``interval`` seconds, and at once when ``wake`` is."""
        while not stop.is_set():
            try:
                self.step()
            except (SlurmError, MarketschedError) as error:  # the other side is away: look again
                self.say(f"waiting: {error}")
            wake.wait(interval)
            wake.clear()

    def step(self) -> Decision:
        """Look at both sides once, and take every action that follows.

        Raises SlurmError if Slurm does not answer, and ConnectionError if the market does not.
        """
        view = self.look()
        decision = decide(view)
        lost = {x.job for x in decision.actions if x.kind == "complete" and x.number == NONE and x.outcome == "failed"}
        self._missing = {job: self._missing.get(job, 0) + 1 for job in lost}
        for action in decision.actions:
            if self._missing.get(action.job, LOOKS) < LOOKS:
                continue  # a controller that comes back may remember
            try:
                if action.kind == "arrive" and self._actions.is_early(action):
                    continue
                self._actions.take(action, view)
                self.taken[action.kind] = self.taken.get(action.kind, 0) + 1
                self.say(" ".join(f"{action.kind} {action.job or ''} {action.number or ''} {action.why}".split()))
            except MarketschedError as error:
                if isinstance(error, ConnectionError):
                    raise
                self.say(f"refused: {action.kind} {action.job} {action.number}: {error}")
        self._note_nodes(view, decision)
        return decision

    def look(self) -> View:
        """Read both sides."""
        if not self._checked:
            self.check_market()
        queue = self.slurm.jobs(self.rules.partition)  # before the market: what was started is in its journal
        counted, down = self._usable()
        here = self.market.market()
        seconds = here["clock"]["round_seconds"]
        self._actions.clock = RoundClock(here["round"], seconds or ROUND_S, seconds is not None)
        known = {
            row["job"]: MarketJob.of(row, order)
            for state in OPEN
            for order, row in enumerate(self.market.jobs(state=state))
        }
        if self._cluster is not None:
            known = {name: self._with_shapes(job) for name, job in known.items()}
        if self.rules.announced is not None:
            write_announced(self.rules.announced, [job for job in known.values() if job.state == "submitted"])
        named = {name for mate in queue if (name := name_of(mate.comment)) is not None}
        for name in named - known.keys():
            if (job := self._finished(name)) is not None:
                known[name] = job
        self._gone = {name: job for name, job in self._gone.items() if name in named}  # Slurm forgets jobs, too
        self._actions.forget_all_but(known)
        capacity = here["limits"]["capacity"]
        usable = counted
        if usable >= capacity:
            self._short_since = None
        else:
            self._short_since = self._short_since or time.monotonic()
            if time.monotonic() - self._short_since < self.rules.node_patience:
                usable, down = capacity, frozenset()
        checks = (self.rules.check_users, self.rules.partition)
        renewed = self._renewed(known, named)
        return View(known, queue, here["round"], capacity, usable, *checks, down, self._types, renewed, self._qos)

    def _renewed(self, known: Mapping[str, MarketJob], named: Set[str]) -> frozenset[str]:
        """Return the next names of running jobs under which a bridge, not their owner, has submitted them again."""
        found = set()
        for name, job in known.items():
            after = successor(name)
            if job.state == "running" and name not in named and after in named and after in known:
                if self.market.job(after)["history"][0]["by"] != job.owner:
                    found.add(after)
        return frozenset(found)

    def _usable(self) -> tuple[int, frozenset[str]]:
        """Return how many nodes Slurm can use, and on a cluster of several kinds the market's names of the others."""
        if self._cluster is None:
            return self.slurm.usable_nodes(self.rules.partition), frozenset()
        usable = {node.name for node in self.slurm.nodes(self.rules.partition) if node.usable}
        down = frozenset(place for place, node in self._nodes.items() if node.name not in usable)
        return len(self._nodes) - len(down), down

    def _with_shapes(self, job: MarketJob) -> MarketJob:
        assert self._cluster is not None
        shapes = slurm_shapes(self._actions.statement(job.job), tuple(self._cluster["resources"]))
        return replace(job, shapes=shapes)

    def _finished(self, name: str) -> MarketJob | None:
        """Return a job that is not open; None: there is none of this name."""
        if name not in self._gone:
            try:
                job = MarketJob.of(self.market.job(name))
            except MarketschedError as error:
                if getattr(error, "status", None) not in (NOT_FOUND, 405, 422):
                    raise
                return None
            if self._cluster is not None:
                job = self._with_shapes(job)
            if not job.gone:  # it came between two calls
                return job
            self._gone[name] = job
        return self._gone[name]

    def _note_nodes(self, view: View, decision: Decision) -> None:
        """Write into the journal how many nodes are usable, when that, or who suffers from it, changes."""
        remark = (min(view.usable, view.capacity), decision.held, decision.removed)
        if remark != (self._remark or (view.capacity, (), ())):
            self.market.nodes(remark[0], held=remark[1], removed=remark[2])
        self._remark = remark


def wake_on_events(market: LiveClient, wake: threading.Event) -> threading.Thread:
    """Set ``wake`` at each event of a market, in a thread that ends with the process."""

    def follow() -> None:
        while True:
            try:
                for _ in market.events(after=market.market()["last_event"]):
                    wake.set()
            except MarketschedError:  # a bridge that is not woken looks at its own pace
                time.sleep(1.0)

    thread = threading.Thread(target=follow, name="events", daemon=True)
    thread.start()
    return thread
