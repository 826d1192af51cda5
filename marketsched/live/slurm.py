"""Slurm's own commands as functions: the queue, and an operator's actions on a job.

Everything goes through ``squeue --json``, ``sbatch``, ``scontrol``, ``scancel`` and ``sinfo`` of the installation that
``SLURM_CONF`` names (tried with 22.05.8); nothing is kept between two calls.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marketsched.live.slurm_demand import NodeDemand, SlurmNode, gpus_in
from marketsched.mechanisms.errors import MarketschedError

UNUSABLE = ("down", "drain", "fail", "maint", "reboot", "unk", "planned", "power", "no_respond", "future", "invalid")
FIELD = re.compile(r"(\w+)=(\S*)")  # of what scontrol prints on one line
ACTIVE = ("RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "STOPPED")  # states in which nodes are taken


class SlurmError(MarketschedError, RuntimeError):
    """A command of Slurm failed, or took too long; the message is Slurm's own."""


@dataclass(frozen=True)
class SlurmJob:
    """A job as the controller sees it."""

    id: int
    name: str
    user: str
    comment: str
    state: str  # Slurm's base state: PENDING, RUNNING, COMPLETING, COMPLETED, FAILED, CANCELLED, NODE_FAIL, ...
    reason: str  # why it is there: JobHeldUser, Resources, NonZeroExitCode, ...
    held: bool  # it waits, with priority 0
    nodes: int  # nodes requested, or in use
    submitted: float  # this and the next two: seconds since 1970; 0: not yet
    started: float
    ended: float  # of a running job: when its time limit is over
    exit_code: int  # status of the script, 128 + signal if a signal ended it
    restarts: int  # how many times it was put back into the queue
    limit: int  # its time limit, minutes; 0: none
    partitions: tuple[str, ...] = ()  # those it may run in; of one that runs, the one it is in
    # the job that its parts are cancelled by: its own number, or that of its array or heterogeneous job
    leader: int = 0
    parts: str = ""  # what makes it several jobs: "an array", "a heterogeneous job"; empty: it is one
    begins_later: bool = False  # it was submitted with a time before which it does not start
    depends: bool = False  # it waits for other jobs (``--dependency``)
    demand: NodeDemand = field(default_factory=NodeDemand)  # what it takes of each of its nodes
    qos: str = ""  # its quality of service; empty: Slurm keeps no account of them
    nice: int = 0  # how far its user put it back (``--nice``)

    @property
    def active(self) -> bool:
        """Whether it has nodes."""
        return self.state in ACTIVE

    @property
    def over(self) -> bool:
        """Whether it has left the nodes for good."""
        return self.state != "PENDING" and not self.active

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SlurmJob:
        """Read one job of ``squeue --json``."""
        status = int(row["exit_code"] or 0)
        started = float(row["start_time"] or 0)
        if row["job_state"] == "PENDING" or (row["job_state"] == "CANCELLED" and started == row["end_time"]):
            started = 0.0  # it has none yet; or was cancelled as it waited
        return cls(
            id=int(row["job_id"]),
            name=str(row["name"]),
            user=str(row["user_name"]),
            comment=str(row["comment"] or ""),
            state=str(row["job_state"]),
            reason=str(row["state_reason"]),
            held=row["job_state"] == "PENDING" and row["priority"] == 0,
            nodes=int(row["node_count"] or 0),
            submitted=float(row["submit_time"] or 0),
            started=started,
            ended=float(row["end_time"] or 0),
            exit_code=status >> 8 if status & 0x7F == 0 else 128 + (status & 0x7F),
            restarts=int(row["restart_cnt"] or 0),
            limit=int(row["time_limit"] or 0),
            partitions=tuple(str(row.get("partition") or "").split(",")),
            leader=int(row.get("het_job_id") or row.get("array_job_id") or row["job_id"]),
            parts="a heterogeneous job" if row.get("het_job_id") else "an array" if row.get("array_job_id") else "",
            depends=row["job_state"] == "PENDING" and bool(row.get("dependency")),
            begins_later=row["job_state"] == "PENDING" and bool(row.get("eligible_time")),
            demand=NodeDemand.of(row, int(row["node_count"] or 0)),
            qos=str(row.get("qos") or ""),
            nice=int(row.get("nice") or 0),
        )


class Slurm:
    """The commands of one installation, run in an environment whose ``SLURM_CONF`` says which cluster is meant.

    ``environment`` None: that of this process. A command that takes more than ``timeout`` seconds counts as failed.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, timeout: float = 30.0) -> None:
        self.environment = None if environment is None else dict(environment)
        self.timeout = timeout

    def run(self, *command: str, text: str | None = None) -> str:
        """Run a command and return its output; SlurmError if it is not there, fails, or takes too long."""
        try:
            done = subprocess.run(
                command,
                env=self.environment,
                input=text or "",
                capture_output=True,
                text=True,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SlurmError(f"no answer in {self.timeout:g} s", source=" ".join(command[:3])) from None
        except OSError as error:
            raise SlurmError(f"{error.strerror}", source=command[0], legal="Slurm's commands on the PATH") from None
        if done.returncode:
            fault = " ".join((done.stderr or done.stdout).split()) or f"status {done.returncode}"
            raise SlurmError(fault, source=" ".join(command[:3]))
        return done.stdout

    def jobs(self, partition: str | None = None) -> list[SlurmJob]:
        """Return all jobs the controller still knows, by number, those that are over too (``MinJobAge`` keeps them).

        Raises SlurmError if the controller does not answer.
        """
        found = json.loads(self.run("squeue", "--json"))
        if found["errors"]:  # without a controller it prints no jobs, and ends with status 0
            raise SlurmError(str(found["errors"][0].get("description", found["errors"][0])), source="squeue --json")
        rows = found["jobs"]
        return sorted(
            (job for job in map(SlurmJob.of, rows) if partition is None or partition in job.partitions),
            key=lambda job: job.id,
        )

    def submit(self, script: str, *options: str) -> int:
        """Submit a batch script; return the job's number."""
        return int(self.run("sbatch", "--parsable", *options, text=script).split(";")[0])

    def release(self, job: int) -> None:
        """Let a held job start; one that is not held stays as it is."""
        self.run("scontrol", "release", str(job))

    def requeue_held(self, job: int) -> None:
        """Take a job's nodes away and put it back into the queue, held."""
        self.run("scontrol", "requeuehold", str(job))

    def hold(self, job: int) -> None:
        """Keep a waiting job from starting."""
        self.run("scontrol", "hold", str(job))

    def cancel(self, job: int) -> None:
        """End a job, running or not; one that is over stays so."""
        self.run("scancel", str(job))

    def update(self, **fields: object) -> None:
        """``scontrol update`` with these fields, such as ``JobId=7, TimeLimit=30``."""
        self.run("scontrol", "update", *(f"{name}={value}" for name, value in fields.items()))

    def configuration(self) -> dict[str, str]:
        """Return what ``scontrol show config`` prints, by key."""
        lines = (line.partition("=") for line in self.run("scontrol", "show", "config").splitlines())
        return {key.strip(): value.strip() for key, mark, value in lines if mark}

    def qos_names(self) -> list[str]:
        """Return the qualities of service that Slurm's accounting knows; none where it keeps no account."""
        if "slurmdbd" not in self.configuration().get("AccountingStorageType", ""):
            return []
        return self.run("sacctmgr", "-nP", "show", "qos", "format=name").split()

    def node_states(self, partition: str) -> dict[str, str]:
        """Return the state of each node of a partition, in small letters, by name; a trailing star says: no answer."""
        rows = (line.split() for line in self.run("sinfo", "-h", "-N", "-p", partition, "-o", "%N %T").splitlines())
        return {name: state.lower() for name, state in rows}

    def partitions(self) -> list[str]:
        """Return the names of all partitions."""
        return list(dict.fromkeys(self.run("sinfo", "-h", "-o", "%R").split()))

    def usable_nodes(self, partition: str) -> int:
        """Return how many nodes of a partition run jobs now or can: one that is drained behind its last job does."""
        states = self.node_states(partition).values()
        return sum(_usable(state) or (state.startswith("draining") and not state.endswith("*")) for state in states)

    def nodes(self, partition: str) -> list[SlurmNode]:
        """Return the nodes of a partition, with what jobs can have of each."""
        states, found = self.node_states(partition), []
        for line in self.run("scontrol", "-o", "show", "node").splitlines():
            fields = dict(FIELD.findall(line))
            if (name := fields.get("NodeName", "")) in states:
                words = {key: fields.get(key, "").replace("(null)", "") for key in ("ActiveFeatures", "Partitions")}
                features, partitions = (tuple(filter(None, text.split(","))) for text in words.values())
                memory = int(fields["RealMemory"]) - int(fields.get("MemSpecLimit", 0))
                cpus = int(fields.get("CPUEfctv") or fields["CPUTot"])
                gpus = gpus_in(fields.get("Gres", ""))
                found.append(SlurmNode(name, cpus, memory, gpus, features, partitions, _usable(states[name])))
        return found


def _usable(state: str) -> bool:
    return not state.endswith("*") and not state.startswith(UNUSABLE)
