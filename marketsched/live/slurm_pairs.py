"""What a bridge has to do, given both sides: the market's jobs, and Slurm's.

`decide` looks at the two lists as they are now and returns the actions that bring them together; it keeps nothing, so
that it does not matter what a bridge before it has done, or half done. Each action is safe to take twice, and none is
needed again once it worked.

On a cluster of several kinds each shape of a job is a job of Slurm. The job arrives once all of them wait; the one that
the market books is released, on the nodes booked, and the others are cancelled. Nothing else ever releases one, so no
two run.

| market | Slurm | action |
|---|---|---|
| submitted | waits, held, for no other job | arrive |
| submitted, arrived | can start, or runs | hold; or take the nodes away, as the bridge did not start it |
| running | held | release, unless nodes are down and it has to wait |
| running | over | complete, with its exit code |
| running | its node failed | complete, without a charge |
| running | runs, and nodes are down | last come first: complete without a charge, submit again under a new name |
| running | unknown | complete, failed; without a charge if the bridge itself has submitted it again |
| dropped, cancelled | waits | cancel |
| evicted | has nodes | take them away: back to the queue, held, or cancelled |
| completed | has nodes | cancel: it ran for all the rounds that it booked |
| regular, or free | waits, in another QOS | set it: nobody else decides which nodes are regular |
| any | several jobs in one, or in other partitions, too | cancel |
| unknown | any | announce its statement, if the comment holds one; else cancel |
"""

from __future__ import annotations

from collections.abc import Mapping

from marketsched.live.slurm import SlurmJob
from marketsched.live.slurm_sides import (
    NONE,
    Action,
    Decision,
    MarketJob,
    View,
    name_of,
    shape_of,
    statement_in,
    successor,
)

NODE_FAILURES = ("NODE_FAIL", "BOOT_FAIL")  # states of Slurm


def decide(view: View) -> Decision:
    """Return the actions."""
    pairs, others, actions = _pairs(view)
    for job, mate in pairs.items():
        actions += _classes(view.market[job], mate, view.qos)
        found = _mend(view.market[job], mate, moved_on=successor(job) in view.renewed)
        here = [each for each in (mate, *others.get(job, ())) if each is not None and not each.over]
        whole = len(here) >= len(view.market[job].shapes)
        actions += [action for action in found if whole or action.kind != "arrive"]
    actions += [
        action for job, mates in others.items() for mate in mates for action in _mend_other(view.market[job], mate)
    ]
    starts, held, removed = _nodes(view, pairs)
    return Decision((*actions, *starts), held, removed)


def _pairs(view: View) -> tuple[dict[str, SlurmJob | None], dict[str, list[SlurmJob]], list[Action]]:
    """Return the mate in Slurm of each job, its mates of other shapes, and what to do about those without a place.

    The mate of a job with several shapes is of the one that is booked, before that of the first.
    """
    of: dict[str, list[SlurmJob]] = {}
    actions = []
    for mate in view.queue:
        name = name_of(mate.comment)
        job = view.market.get(name or "")
        if not mate.over and (why := _several(mate, view)):
            actions.append(Action("cancel", "", mate.leader or mate.id, why))
            continue
        if job is not None and not (why := _misfit(job, mate, view)):
            of.setdefault(job.job, []).append(mate)
        elif not mate.over:
            if job is None and statement_in(mate.comment) is not None:
                actions.append(Action("hold" if not mate.held else "announce", "", mate.id))
            else:
                why = why if job is not None else "this job was not announced to the market"
                actions.append(Action("cancel", "", mate.id, why))
    pairs: dict[str, SlurmJob | None] = {name: None for name, job in view.market.items() if not job.gone}
    others: dict[str, list[SlurmJob]] = {}
    for name, mates in of.items():
        job = view.market[name]
        for shape in sorted({_shape(job, mate) for mate in mates}):
            same = [mate for mate in mates if _shape(job, mate) == shape]
            if job.state in ("submitted", "arrived"):  # what is over of these never ran for it
                same = [mate for mate in same if not mate.over] or same
            best = min(same, key=_rank)
            if shape == (job.shape or 0):
                pairs[name] = best
            else:
                others.setdefault(name, []).append(best)
            why = f"{name} is job {best.id} already"
            actions += [Action("cancel", "", mate.id, why) for mate in same if mate is not best and not mate.over]
    return pairs, others, actions


def _shape(job: MarketJob, mate: SlurmJob) -> int:
    """Return which shape of a job of the market a job of Slurm is; 0 on identical nodes."""
    return (shape_of(mate.comment) or 0) if job.shapes else 0


def _several(mate: SlurmJob, view: View) -> str:
    """Say why a job of Slurm could take more than one job of the market; empty: it cannot."""
    if mate.parts:
        return f"{mate.parts} is several jobs, and the market starts one"
    if mate.partitions not in ((), (view.partition,)):
        return f"it waits in {', '.join(mate.partitions)}, and the market has {view.partition} alone"
    return ""


def _misfit(job: MarketJob, mate: SlurmJob, view: View) -> str:
    """Say why a job of Slurm cannot be this job of the market; empty: it can."""
    if view.check_users and mate.user != job.owner:
        return f"{job.job} belongs to another user"
    shape = shape_of(mate.comment)
    if job.shapes and (shape or 0) < len(job.shapes):
        # What has started was looked at before, and Slurm then tells what it has, which may be more.
        why = "" if mate.started else job.shapes[shape or 0].misfit(mate.demand, mate.nodes, view.types)
        return why and f"{job.job}, shape {shape or 0}: {why}"
    if shape is not None:
        return f"{job.job} has no shape {shape}"
    # Slurm lists a run with fewer nodes once one of them failed.
    if mate.nodes > job.nodes or (mate.nodes < job.nodes and not mate.started):
        return f"{job.job} was announced with {job.nodes} nodes, not {mate.nodes}"
    return ""


def _rank(mate: SlurmJob) -> tuple[int, int]:
    """Return who comes first among several of one name: who has nodes, then who had, then who waits."""
    return (0 if mate.active else 1 if mate.over and mate.started else 2 if not mate.over else 3, mate.id)


def _classes(job: MarketJob, mate: SlurmJob | None, qos: tuple[str, str] | None) -> list[Action]:
    """Return what gives a job of Slurm the quality of service of its class, while it waits: Slurm changes no run's."""
    if qos is None or mate is None or mate.over or mate.active or job.gone:
        return []
    wanted = qos[0] if job.regular else qos[1]
    return [] if mate.qos == wanted else [Action("class", job.job, mate.id, wanted)]


def _mend(job: MarketJob, mate: SlurmJob | None, *, moved_on: bool) -> list[Action]:
    """Return what one pair needs, but for starts; ``moved_on``: the job of Slurm has its next name already."""
    if job.state in ("submitted", "arrived"):
        return _mend_waiting(job, mate)
    if job.state == "running":
        if mate is None and moved_on:
            return [Action("complete", job.job, NONE, "its nodes failed", "node-failed")]
        return [_completion(job, mate)] if mate is None or mate.over else []
    if mate is None or mate.over or (mate.held and job.state in ("evicted", "completed")):
        return []
    if mate.active and job.state == "completed":
        how = "it used all the rounds that it booked" if job.outcome == "overrun" else job.outcome or job.state
        return [Action("cancel", job.job, mate.id, how)]
    if mate.active:
        return [Action("stop", job.job, mate.id, f"{job.state} by the market")]
    if job.state == "evicted":
        return [Action("hold", job.job, mate.id)]
    return [Action("cancel", job.job, mate.id, f"{job.state} by the market")]


def _mend_other(job: MarketJob, mate: SlurmJob) -> list[Action]:
    """Return what a mate needs that is of another shape than the one that is booked, or the first."""
    if mate.over:
        return []
    if job.state in ("submitted", "arrived"):
        return [action for action in _mend_waiting(job, mate) if action.kind != "arrive"]
    why = f"the market booked shape {job.shape} of {job.job}" if job.shape is not None else f"{job.state} by the market"
    return [Action("cancel", job.job, mate.id, why)]


def _mend_waiting(job: MarketJob, mate: SlurmJob | None) -> list[Action]:
    if mate is None or mate.over:
        return []
    if mate.active:
        return [Action("stop", job.job, mate.id, "the market has not started it")]
    first = [] if mate.held else [Action("hold", job.job, mate.id)]
    ready = job.state == "submitted" and not mate.depends
    return [*first, *([Action("arrive", job.job, mate.id)] if ready else [])]


def _completion(job: MarketJob, mate: SlurmJob | None) -> Action:
    if mate is None:
        return Action("complete", job.job, NONE, "Slurm does not know it", "failed")
    if mate.state in NODE_FAILURES:
        return Action("complete", job.job, mate.id, "its node failed", "node-failed")
    done = mate.state == "COMPLETED"
    return Action("complete", job.job, mate.id, mate.state, "done" if done else "failed", mate.exit_code)


def _nodes(view: View, pairs: Mapping[str, SlurmJob | None]) -> tuple[list[Action], tuple[str, ...], tuple[str, ...]]:
    """Return starts, and where nodes are missing who has to wait and, last come first, who has to go."""
    mates = {name: mate for name, mate in pairs.items() if mate is not None and not mate.over}
    running = sorted((view.market[name] for name in mates), key=lambda job: job.order)
    running = [job for job in running if job.state == "running"]
    on_nodes = [job for job in running if not mates[job.job].held]
    waiting = [job for job in running if mates[job.job].held]
    placed, plenty = any(job.shapes for job in running), view.usable >= view.capacity
    actions: list[Action] = []
    load = sum(job.nodes for job in on_nodes)
    removed, held = [], []
    while load > view.usable and on_nodes and not (placed or plenty):  # Slurm itself ends what runs on a place booked
        last = on_nodes.pop()
        load -= last.nodes
        removed.append(last.job)
        actions.append(Action("again", last.job, mates[last.job].id, "nodes are down", "node-failed"))
    for job in waiting:
        number = mates[job.job].id
        fits = plenty or (load + job.nodes <= view.usable and not removed)
        if (not view.down.intersection(job.places)) if placed else fits:
            load += job.nodes
            actions.append(Action("release", job.job, number))
            continue
        held.append(job.job)
        if job.start is not None and view.round > job.start + 1:  # a whole round without its nodes
            actions.append(Action("take_back", job.job, number, "nodes are down", "node-failed"))
    return actions, tuple(held), tuple(removed)
