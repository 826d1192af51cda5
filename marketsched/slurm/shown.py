"""A script that shows a lie on any Slurm with accounts: the same jobs twice, the truth first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marketsched.slurm.fair_share import Situation
from marketsched.slurm.gate import LEAST, LESS, PLAIN, ROUND_S, wall_time
from marketsched.slurm.lies import LIES, parts_of
from marketsched.slurm.situations import Looked

SCRIPT = """#!/bin/bash
# A job {what}: what that gains under Slurm's fair share. The same jobs twice, the truth first.
# Found by marketsched on Slurm {version}: the job was done {gains} rounds of ten minutes earlier.
#
# It takes a Slurm for trials with nothing else to do: slurmdbd, an operator's rights in it, and the partition
# $PARTITION with {nodes} nodes of one processor each. It makes accounts and QOS, and sets their usage to 0 before each
# of the two, which last about {hours:.1f} hours of Slurm's clock each. slurm.conf:
#   MinJobAge=3600
{conf}
set -euo pipefail
PARTITION=${{PARTITION:-market}}
ME=$(id -un)
manage() {{ sacctmgr -i -Q "$@" > /dev/null || true; }}  # what is there already stays

{setup}
gate() {{ scontrol update PartitionName="$PARTITION" State="$1"; }}

wait_until() {{ local left=$(( $1 - $(date +%s) )); if [ "$left" -gt 0 ]; then sleep "$left"; fi; }}

until_round() {{  # the gate is open in a round, and closed while jobs end and others are submitted
    while [ "$ROUND" -lt "$1" ]; do
        gate UP
        ROUND=$(( ROUND + 1 ))
        wait_until $(( BEGIN + (ROUND - 1) * {round_s} - 120 ))
        gate DOWN
        wait_until $(( BEGIN + (ROUND - 1) * {round_s} ))
    done
}}

ask() {{  # name, minutes that it takes, options
    local name=$1 seconds=$(( $2 * 60 - 90 )) number; shift 2
    number=$(sbatch --parsable -p "$PARTITION" -J "$name" --output=/dev/null --chdir=/ "$@" \\
        --wrap="sleep $seconds")
    echo "$name $number" >> "$NUMBERS"
}}

start() {{
    NUMBERS=$(mktemp) ROUND=0 BEGIN=$(( $(date +%s) + 600 ))
{reset}
    gate DOWN
}}

finish() {{  # truth or lie; names of the jobs that are looked at
    local name number waiting=yes
    while [ "$waiting" = yes ]; do
        until_round $(( ROUND + 1 ))
        waiting=no
        for name in "${{@:2}}"; do
            number=$(awk -v name="$name" '$1 == name {{print $2}}' "$NUMBERS")
            if squeue -h -j "$number" -t PD -o %i | grep -q .; then waiting=yes; fi
        done
    done
    for name in "${{@:2}}"; do
        number=$(awk -v name="$name" '$1 == name {{print $2}}' "$NUMBERS")
        at=$(date -d "$(scontrol show job "$number" | sed -n 's/.*StartTime=\\([^ ]*\\).*/\\1/p')" +%s)
        echo "$1: $name starts in round $(( (at - BEGIN) / {round_s} + 1 ))"
    done
    awk '{{print $2}}' "$NUMBERS" | xargs scancel
    gate UP
    sleep 300
}}

{truth}
{lie}
"""


def script(looked: Looked, lie: str, lying: Situation, version: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a shell script that plays the truth and a lie on a Slurm that is there.

    Parameters
    ----------
    looked : Looked
        The job, with the cluster and the truth.
    lie : str
        Key of `LIES`.
    lying : Situation
        The jobs under the lie.
    version : str
        Of the Slurm that it was found on.
    rows : sequence of mapping
        The plays on it, each with its ``gain``.
    """
    cluster, gains = looked.cluster, sorted({int(row["gain"]) for row in rows})
    last = max((job.arrival or 0) for job in looked.truth.jobs)
    kept = {name: value for name, value in cluster.lines().items() if name.startswith(("Priority", "Scheduler"))}
    setup = [f"manage add account {name} fairshare={share}" for name, share in cluster.shares.items()]
    setup += [
        f"manage add qos {name} priority={priority:.0f} usagefactor={factor:.6f}"
        for name, (priority, factor) in cluster.qos.items()
    ]
    allowed = f"qos={','.join(['normal', *cluster.qos])} defaultqos=normal"
    setup += [f'manage add user "$ME" account={name} fairshare=1 {allowed}' for name in cluster.shares]
    reset = [f"    manage modify account {name} set rawusage=0" for name in cluster.shares]
    return SCRIPT.format(
        what=LIES[lie][0], version=version, gains=" or ".join(map(str, gains)), nodes=cluster.nodes,
        hours=(last + 6) * ROUND_S / 3600, conf="".join(f"#   {name}={value}\n" for name, value in kept.items()),
        setup="\n".join(setup) + "\n", reset="\n".join(reset), round_s=ROUND_S,
        truth=_plays("truth", looked.truth), lie=_plays("lie", lying),
    )  # fmt: skip


def _plays(word: str, situation: Situation) -> str:
    """Return the lines that submit the jobs of a situation, round by round."""
    by_round: dict[int, list[str]] = {}
    for job in situation.jobs:
        asked, limit = situation.asked.get(job.name, PLAIN), wall_time(job)
        due = (job.arrival or 1) - asked.ahead
        options = [
            f"--account={job.owner}", f"--nodes={job.truth.concurrency}", f"--time={limit * ROUND_S // 60 - LESS}",
            f"--time-min={(asked.least or limit) * ROUND_S // 60 - LEAST}",
        ]  # fmt: skip
        options += [f"--qos={asked.qos}"] if asked.qos else []
        if asked.ahead:
            begins = f"@$(( BEGIN + {(job.arrival or 1) - 1} * {ROUND_S} ))"
            options.append(f'--begin="$(date -d "{begins}" +%Y-%m-%dT%H:%M:%S)"')
        by_round.setdefault(due, []).append(f"ask {job.name} {job.duration * ROUND_S // 60} {' '.join(options)}")
    lines = [f"start  # the {word}"]
    for due in sorted(by_round):
        lines += [f"until_round {due}", *by_round[due]]
    return "\n".join([*lines, f"finish {word} {' '.join(parts_of(situation))}", ""])
