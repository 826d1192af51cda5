"""Causes of recorded waits: levels against a referee, and logs whose scheduler is known."""

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.recorded.levels import levels_of, recorded_jobs
from marketsched.recorded.waits import waits_of
from marketsched.worlds.logs.job_log import JobLog

NODES, USERS, DAY_S = 100, 12, 86_400.0


def drawn_jobs(n=4000, seed=0, load=0.9, widest=64):
    """Return jobs of twelve users on 100 nodes: narrow and wide, short and long, requests above their runs."""
    rng = default_rng(seed)
    run = np.clip(rng.lognormal(8.0, 1.2, n), 120, 2 * DAY_S).round()
    nodes = np.minimum(2 ** rng.integers(0, 7, n), widest)
    gaps = rng.exponential(1.0, n)
    submit = np.cumsum(gaps * (run @ nodes) / (load * NODES) / gaps.sum()).round()
    user = rng.integers(0, USERS, n)
    table = {"submit_s": submit, "run_s": run, "requested_s": (run * rng.uniform(1, 4, n)).round(), "processors": nodes}
    return pd.DataFrame({**table, "user": [f"u{each}" for each in user], "queue": "batch"})


def easy(jobs, nodes=NODES, order="older", most_of_user=None, closed=()):
    """Return the starts under EASY, with an order, a limit of runs per user, and times without starts."""
    submit, run, request, width = (
        jobs[name].to_numpy(float) for name in ("submit_s", "run_s", "requested_s", "processors")
    )
    user, start, usage = jobs["user"].to_numpy(), np.full(len(jobs), np.inf), {}
    waiting, running, came, now, last = [], [], 0, 0.0, 0.0
    while came < len(jobs) or waiting:
        reopened = [until for since, until in closed if since <= now < until]
        times = [*(submit[came : came + 1]), *(start[j] + run[j] for j in running), *reopened]
        now = min(each for each in times if each > now or came == 0)
        for j in running:
            usage[user[j]] = usage.get(user[j], 0.0) + width[j] * (now - last)
        usage = {who: used * 2 ** ((last - now) / 604_800) for who, used in usage.items()}
        last = now
        running = [j for j in running if start[j] + run[j] > now]
        while came < len(jobs) and submit[came] <= now:
            waiting.append(came)
            came += 1
        if any(since <= now < until for since, until in closed):
            continue
        ranks = {"older": np.arange(len(jobs)), "shorter": request, "lighter": [usage.get(who, 0.0) for who in user]}
        free, shadow, spare = nodes - sum(width[j] for j in running), np.inf, 0.0
        head = False
        for j in sorted(waiting, key=ranks[order].__getitem__):
            if most_of_user and sum(user[k] == user[j] for k in running) >= most_of_user:
                continue
            if width[j] <= free and (not head or now + request[j] <= shadow or width[j] <= spare):
                spare -= width[j] * (head and now + request[j] > shadow)
                start[j], free = now, free - width[j]
                running.append(j)
                waiting.remove(j)
            elif not head:
                head, later = True, free
                for k in sorted(running, key=lambda k: start[k] + request[k]):
                    later += width[k]
                    if later >= width[j]:
                        shadow, spare = max(start[k] + request[k], now + 1), later - width[j]
                        break
    return start


def log_of(jobs, starts, nodes=NODES):
    return JobLog.of(jobs.assign(start_s=starts), nodes=nodes)


def shares(jobs, starts, nodes=NODES):
    return waits_of(log_of(jobs, starts, nodes)).causes.set_index("cause")["share"]


def test_levels_of_a_small_log_are_those_of_a_referee():
    jobs = drawn_jobs(150, load=1.5)
    jobs["queue"] = default_rng(3).choice(["day", "night"], len(jobs))
    known = recorded_jobs(log_of(jobs, easy(jobs)).table)
    found = levels_of(known, NODES, default_rng(1))
    assert np.bincount(found.job, found.seconds, len(jobs)) == pytest.approx(
        np.maximum(known.start - known.submit - 60, 0), abs=1e-6
    )
    for i in range(0, found.job.size, max(1, found.job.size // 500)):
        j, now = found.job[i], found.time[i]
        runs = (known.start <= now) & (now < known.end)
        assert found.busy[i] == known.nodes[runs].sum()
        assert found.later[i] == known.nodes[runs & (np.arange(len(jobs)) > j)].sum()
        for scope, names in enumerate((known.user, known.queue)):
            own = runs & (names == names[j])
            assert found.waiting[:, scope, i].tolist() == [known.nodes[own].sum(), own.sum()]
    assert not (found.kept & (found.busy + known.nodes[found.job] > NODES)).any()


@pytest.mark.compiled
def test_a_log_of_easy_waits_for_nodes_alone():
    jobs = drawn_jobs()
    found = shares(jobs, easy(jobs))
    assert found[["ahead", "overtaken", "kept"]].sum() > 0.98 and found["ahead"] > 0.3
    assert found.drop(["ahead", "overtaken", "kept"]).max() < 0.01


@pytest.mark.compiled
def test_a_smaller_machine_a_limit_of_users_and_an_outage_are_found():
    jobs = drawn_jobs(load=0.7, widest=16)
    smaller = shares(jobs, easy(jobs, nodes=80))
    assert smaller["smaller"] > 0.5 and smaller["unexplained"] < 0.05
    narrow = drawn_jobs(load=0.3, widest=4)
    limited = shares(narrow, easy(narrow, most_of_user=2))
    assert limited["user_limit"] > 0.5 and limited["unexplained"] < 0.05
    middle = narrow["submit_s"].median()
    paused = shares(narrow, easy(narrow, closed=[(middle, middle + DAY_S)]))
    assert paused["pause"] > 0.5 and paused["unexplained"] < 0.05


@pytest.mark.compiled
def test_inferred_causes_need_three_times_their_placebo():
    narrow = drawn_jobs(load=0.3, widest=4)
    limited = narrow.assign(user=default_rng(2).permutation(narrow["user"]))  # the limit was of others
    found = waits_of(log_of(limited, easy(narrow, most_of_user=2))).causes.set_index("cause")
    assert found["share"]["user_limit"] == 0 and found["share"]["unexplained"] > 0.4


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("order", "said"), [("older", "first come"), ("shorter", "shortest request"), ("lighter", "lightest user")]
)
def test_the_order_of_a_known_scheduler_is_told(order, said):
    jobs = drawn_jobs(load=1.1)
    assert waits_of(log_of(jobs, easy(jobs, order=order))).meta["order"].startswith(f"Order: {said}")


@pytest.mark.compiled
def test_time_before_a_job_was_eligible_is_told_as_the_log_states_it():
    jobs = drawn_jobs(500, load=0.4)
    eligible = jobs["submit_s"] + np.where(np.arange(500) % 5, 0.0, 7200.0)
    starts = easy(jobs.assign(submit_s=eligible).sort_values("submit_s", ignore_index=True))
    order = np.argsort(eligible.to_numpy(), kind="stable")
    held = jobs.assign(eligible_s=eligible, start_s=pd.Series(starts, index=order))
    found = waits_of(JobLog.of(held, nodes=NODES)).jobs
    assert found["ineligible"].sum() == pytest.approx(100 * (7200 - 60), rel=0.02)


@pytest.mark.compiled
def test_groups_add_up_and_a_log_without_starts_is_refused():
    jobs = drawn_jobs(500, load=1.2)
    found = waits_of(log_of(jobs, easy(jobs)), by=["user", "width"])
    assert found.groups.groupby("by")["share"].sum().tolist() == pytest.approx([1, 1])
    seconds = found.jobs.set_index("user")[found.causes["cause"].tolist()].groupby("user").sum()
    own = found.groups[found.groups["by"] == "user"].set_index("name")
    assert own["share"].to_dict() == pytest.approx((seconds.sum(axis=1) / seconds.to_numpy().sum()).to_dict())
    with pytest.raises(InvalidParameterError, match="the starts of 0% of the runs are recorded"):
        waits_of(JobLog.of(jobs, nodes=NODES))
