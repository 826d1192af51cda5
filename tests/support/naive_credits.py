"""The rule `credits` written out on lists and dictionaries, after the text of docs/mathematics.md and its docstrings.

`Market` takes arrivals and completions, and clears rounds; it keeps everything and looks through all of it.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

from marketsched.mechanisms.credits.outlook import Outlook
from marketsched.mechanisms.credits.upgrades import Upgrade

MILLION = 1_000_000  # a credit
BANDS = (Fraction(2, 100), Fraction(6, 100), Fraction(15, 100), Fraction(35, 100))  # widths as parts of the machine
NO_START = 10**9


@dataclass
class Owner:
    share: float
    purse: int = 0  # millionths, as all amounts
    earned: int = 0
    spent: int = 0
    expired: int = 0
    used: float = 0.0  # free node-rounds, which fade
    last_jobs: list = field(default_factory=list)  # pairs of importance and work, with the round of arrival


@dataclass
class Job:
    name: str
    owner: str
    width: int
    law: list  # pairs of a duration and its chance
    last: int  # completion that is worth anything
    value: float
    rank: int | None = None
    every: int | None = None  # rounds between its checkpoints
    arrival: int = 0
    start: int | None = None
    regular: int | None = None  # since this round
    runs: int = 0
    saved: int = 0
    longest: int = 0  # stretch of work without an end
    paid: int = 0
    upgrade: Upgrade | None = None  # that waits for its start

    def __post_init__(self):
        self.mean = sum(d * p for d, p in self.law)
        self.important = self.value / (self.width * self.mean) if self.rank is None else float(self.rank)

    def law_of_rest(self):
        """Return what can be left, with chances; a job that its law excludes may end in each round."""
        if not self.saved:
            return self.law
        left = [(d - self.saved, p) for d, p in self.law if d > self.longest]
        return [(d, p / sum(p for _, p in left)) for d, p in left] or [(1, 1.0)]

    @property
    def rest(self):
        return sum(d * p for d, p in self.law_of_rest())

    @property
    def last_start(self):
        return self.last - min(d for d, _ in self.law_of_rest())


class Market:
    def __init__(self, nodes, shares, r, carry, start, patience, margin, longest, guests=None, reserve="head"):
        self.reserve = reserve
        self.nodes, self.r, self.carry, self.patience, self.margin = nodes, r, carry, patience, margin
        self.shares, self.guests, self.longest, self.now = shares, guests, longest, 1
        self.owners = {name: Owner(0.0) for name in shares if name != guests}
        self.start = start
        self.divide()
        self.fill()
        self.jobs = []  # present ones, in order of arrival
        self.coming, self.gone = [], set()
        self.completed = {}  # rounds of their work, until the next round is cleared
        self.announced = {band: [0.0, 0.0] for band in range(5)}  # rounds and jobs
        self.real, self.expected = 1.0, 1.0  # node-rounds
        self.offered = self.rounds = self.before = 0.0  # loads, node-rounds
        self.waits = {(regular, band): [] for regular in (False, True) for band in range(5)}
        self.upgrades, self.free_runs = [], 0
        self.counts = dict.fromkeys(
            ("jobs", "upgrades", "could_not_pay", "requeues", "node_rounds_lost", "regular_completed", "completed",
             "beyond_purse", "credits_undone"), 0
        )  # fmt: skip

    # What is known of owners and jobs.

    def divide(self):
        """Divide the machine by shares; guests divide theirs."""
        total = sum(self.shares.values())
        guests = [name for name in self.owners if name not in self.shares]
        for name, each in self.owners.items():
            if name in self.shares:
                each.share = self.shares[name] / total
            elif self.guests:
                each.share = self.shares[self.guests] / total * 1.0 / len(guests)

    def fill(self):
        """Fill the purses of those who are known at the beginning."""
        for each in self.owners.values():
            each.purse = each.earned = math.floor(self.start * self.cap(each))

    def set_share(self, name, share):
        self.shares = {**self.shares, name: share}
        self.owners.setdefault(name, Owner(0.0))
        self.divide()
        if self.now == 1:
            self.fill()

    def income(self, owner):
        return math.floor(MILLION * self.r * self.nodes * owner.share)

    def cap(self, owner):
        return math.floor(self.carry * self.income(owner))

    def band(self, width):
        return sum(Fraction(width, self.nodes) > most for most in BANDS)

    @property
    def kappa(self):
        return self.real / self.expected

    def usual_in(self, band):
        """Return the mean that jobs of a band usually announce: of all, where none of it has left lately."""
        rounds, jobs = self.announced[band]
        if jobs > 0.5:
            return rounds / jobs
        rounds, jobs = (sum(pair[k] for pair in self.announced.values()) for k in (0, 1))
        return rounds / jobs if jobs else 4.0

    def usual(self, width):
        return self.usual_in(self.band(width))

    @property
    def load(self):
        """Return the offered load, as a part of the machine."""
        return self.offered / self.rounds / self.nodes

    def needed(self, owner):
        """Return the credits that an owner's regular jobs still take, a round at least."""
        total = 0.0
        for each in self.jobs:
            if each.owner == owner and each.regular is not None and each.name not in self.completed:
                ran = 0 if each.start is None else self.now - each.start
                total += each.width * max(1.0, each.rest * self.kappa - ran)
        return total

    def threshold(self, owner):
        """Return how important a job has to be among the last ones of its owner."""
        last = self.owners[owner].last_jobs[-64:]
        if len(last) < 5:
            return 0.0
        work = sum(work for _, work, _ in last)
        asked = work / max(8.0, self.now - min(t for *_, t in last) + 1.0) * self.kappa
        savings = max(0.0, self.owners[owner].purse / MILLION - self.needed(owner))
        can_pay = self.income(self.owners[owner]) / MILLION + savings / 400.0
        covered = 0.0
        for important, each, _ in sorted(last, reverse=True):
            covered += each
            if covered > can_pay / asked * work:
                return important
        return 0.0

    def bound(self, width):
        left = (1 - Fraction(str(self.r))) * self.nodes - width + 1
        ahead = [
            min(each.purse + self.patience * self.income(each), max(each.purse, self.cap(each)))
            for each in self.owners.values()
        ]
        return float(self.patience + sum(ahead) // (left * MILLION)) if left > 0 else math.nan

    def idle(self):
        return self.nodes - sum(each.width for each in self.jobs if each.start is not None)

    def outlook(self, width, law, last, value, owner):
        """Return the quote of a job that is submitted now."""
        job = Job("", owner, width, law, last, value)
        known = owner in self.owners
        waits = [self.covered(regular, self.band(width)) for regular in (True, False)]
        bound = self.bound(width)
        return Outlook(
            cost=width * job.mean * self.kappa, purse=self.owners[owner].purse / MILLION if known else 0.0,
            needed=self.needed(owner), threshold=self.threshold(owner) if known else 0.0, important=job.important,
            late=max(self.now, math.ceil(last - job.mean * (1 + self.margin) - 2)),
            bound=None if math.isnan(bound) else int(bound), regular_within=waits[0], free_within=waits[1],
            taken=self.counts["requeues"] / self.free_runs if self.free_runs else None,
        )  # fmt: skip

    def covered(self, regular, band):
        """Return the wait that covers the next one with 95 %: at such a width, or at any if too few are known."""
        kept = {key: waits[-128:] for key, waits in self.waits.items()}
        of_all = [wait for key, waits in kept.items() if key[0] == regular for wait in waits]
        for last in (sorted(kept[regular, band]), sorted(of_all)):
            place = math.ceil(0.95 * (len(last) + 1))
            if place <= len(last):
                return last[place - 1] if last[place - 1] < NO_START else None
        return None

    # What happens.

    def arrive(self, job):
        job.arrival = self.now
        self.coming.append(job)

    def complete(self, job):
        """A run ended with the round that was cleared last."""
        self.counts["completed"] += 1
        self.counts["regular_completed"] += job.regular is not None
        self.gone.add(job.name)
        self.completed[job.name] = self.now - job.start + job.saved
        job.start = None

    def clear(self):
        """Clear the round; return pairs of what happens and to whom."""
        events = self.leave()
        events += self.enter()
        for owner in self.owners.values():
            whole = owner.purse + self.income(owner)
            kept = min(whole, max(owner.purse, self.cap(owner)))
            owner.earned, owner.expired = owner.earned + self.income(owner), owner.expired + whole - kept
            owner.purse, owner.used = kept, 0.99 * owner.used
        self.gone |= {name for _, name in events}
        self.upgrade()
        self.prepay()
        events += self.regular_service()
        events += self.free_service()
        for each in self.jobs:
            if each.start is not None and each.regular is None:
                self.owners[each.owner].used += each.width
        self.now += 1
        return events

    def leave(self):
        """Let jobs leave that are over, or can be worth nothing any more; learn from each, in order of arrival."""
        events, here = [], self.jobs
        self.jobs = []
        for job in here:
            used = self.completed.pop(job.name, None)
            if used is None:
                if job.start is None:
                    stays = self.now <= job.last_start
                else:
                    stays = self.now < min(job.last, job.start + self.longest)
                if stays:
                    self.jobs.append(job)
                    continue
                ran, job.start = job.start is not None or job.runs > 0, None
                events.append(("evict" if ran else "drop", job.name))
                self.counts["credits_undone"] += job.paid / MILLION
                if not ran:
                    self.waits[job.regular is not None, self.band(job.width)].append(NO_START)
            else:
                self.real = 0.98 * self.real + job.width * used
                self.expected = 0.98 * self.expected + job.width * job.mean
            if job.upgrade:
                job.upgrade.left = self.now
            means = self.announced[self.band(job.width)]
            means[:] = 0.97 * means[0] + job.mean, 0.97 * means[1] + 1
        return events

    def enter(self):
        """Let jobs come, as free ones; those that come too late leave. Then who has come counts as offered load."""
        events, came = [], 0.0
        for job in self.coming:
            came += job.width * self.usual(job.width) * self.kappa
            if self.now > job.last_start:
                events.append(("drop", job.name))
                continue
            if job.owner not in self.owners:
                self.owners[job.owner] = Owner(0.0)
                self.divide()
            self.jobs.append(job)
            self.counts["jobs"] += 1
            share = self.owners[job.owner].share
            self.counts["beyond_purse"] += job.width * job.mean > self.carry * self.r * self.nodes * share
        self.coming = []
        self.offered, self.rounds = 0.99 * self.offered + self.before, 0.99 * self.rounds + 1
        self.before = came  # from the next round on
        return events

    def upgrade(self):
        """Make late jobs regular that their owner can pay for, and that are important to it."""
        for job in self.jobs:
            late = job.last - self.now <= job.rest * (1 + self.margin) + 2
            if job.start is not None or job.regular is not None or not late:
                continue
            owner, cost = self.owners[job.owner], job.width * job.rest * self.kappa
            threshold = self.threshold(job.owner)
            if owner.purse / MILLION - self.needed(job.owner) >= cost and job.important >= threshold:
                job.regular = self.now
                job.upgrade = Upgrade(
                    job.name, job.owner, self.now, cost, owner.purse / MILLION, threshold, self.bound(job.width)
                )
                self.upgrades.append(job.upgrade)
                self.counts["upgrades"] += 1
        for job in self.jobs:
            if job.arrival == self.now:
                self.owners[job.owner].last_jobs.append((job.important, job.width * job.mean, self.now))

    def pays(self, job):
        """Let an owner pay for a round of a job, if it can."""
        owner, cost = self.owners[job.owner], job.width * MILLION
        if owner.purse < cost:
            return False
        owner.purse, owner.spent, job.paid = owner.purse - cost, owner.spent + cost, job.paid + cost
        return True

    def prepay(self):
        for job in self.jobs:
            if job.start is not None and job.regular is not None and not self.pays(job):
                job.regular = None
                self.counts["could_not_pay"] += 1

    def regular_service(self):
        """Start regular jobs, on nodes of free runs if they have to."""
        taken, started = [], []
        waiting = [job for job in self.jobs if job.regular is not None and job.start is None]
        for place, job in enumerate(waiting):
            patient = self.now - job.regular < self.patience
            if self.owners[job.owner].purse < job.width * MILLION:
                job.upgrade.unpaid += not patient
                continue
            victims = self.victims(job.width - self.idle())
            if victims is None:
                continue
            lost = sum(each.width * (self.now - each.start) for each in victims)
            own, behind = (
                sum(each.width * self.usual(each.width) for each in jobs) for jobs in ([job], waiting[place + 1 :])
            )
            if victims and patient and lost > 1.5 * max(1.0, self.load) ** 3 * (own + 2 * behind):
                continue
            for each in victims:
                self.take_back(each)
                taken.append(("requeue", each.name))
            self.pays(job)
            started.append(self.begin(job))
        return taken + started

    def victims(self, missing):
        """Return free runs with so many nodes, the latest arrivals, without those not needed; None: there are none."""
        chosen = []
        for job in reversed(self.jobs):
            if sum(each.width for each in chosen) < missing and job.start is not None and job.regular is None:
                chosen.append(job)
        if sum(each.width for each in chosen) < missing:
            return None
        for job in reversed(chosen.copy()):
            if sum(each.width for each in chosen) - job.width >= missing:
                chosen.remove(job)
        return chosen

    def take_back(self, job):
        ran = self.now - job.start
        kept = ran // job.every * job.every if job.every else 0
        job.longest, job.saved = max(job.longest, job.saved + ran), job.saved + kept
        job.start, job.runs = None, job.runs + 1
        self.counts["requeues"] += 1
        self.counts["node_rounds_lost"] += job.width * (ran - kept)

    def free_service(self):
        """Start free jobs on idle nodes: in turns of owners, those without a share last; its important ones first."""

        def turn(job):
            owner = self.owners[job.owner]
            due = (owner.used + 1.0) / owner.share if owner.share else owner.used
            return not owner.share, due, list(self.owners).index(job.owner), -job.important

        waiting = [job for job in self.jobs if job.regular is None and job.start is None]
        begun, reserved, left = [], None, 0
        for job in sorted(waiting, key=turn):
            late = reserved is not None and max(1.0, self.usual(job.width)) > reserved
            if job.width > self.idle():
                if self.reserve == "head" and reserved is None:
                    reserved, left = self.reservation(job.width)
            elif not late or job.width <= left:
                left -= job.width if late else 0
                begun.append(self.begin(job))
        return begun

    def reservation(self, width):
        """Return after how many rounds so many nodes are idle if runs last as usual, and how many more are then."""
        ran = [(job, self.now - job.start) for job in self.jobs if job.start is not None]
        ends = [(max(1.0, rounds / 2, self.usual(job.width) - rounds), job.width) for job, rounds in ran]
        for end in sorted({end for end, _ in ends}):
            idle = self.idle() + sum(nodes for when, nodes in ends if when <= end)
            if idle >= width:
                return end, idle - width

    def begin(self, job):
        if job.regular is None:
            self.free_runs += 1
            if not job.runs:
                self.waits[False, self.band(job.width)].append(self.now - job.arrival)
        else:
            self.waits[True, self.band(job.width)].append(self.now - job.regular)
            job.upgrade.started, job.upgrade = self.now, None
        job.start = self.now
        return "start", job.name

    def play(self, jobs, fates, horizon):
        """Play jobs, in order of submission; yield what happens in each round, and to whom.

        A pair of ``fates`` is the round in which a job is ready, and the rounds that it takes.
        """
        while self.now <= horizon:
            for job in jobs:
                if fates[job.name][0] == self.now:
                    self.arrive(job)
            events = self.clear()
            for job in jobs:
                if job.start is not None and job.start + fates[job.name][1] - job.saved == self.now:
                    self.complete(job)
                    events.append(("complete", job.name))
            yield events

    def close(self, jobs):
        """After the last round: who is left leaves, who came last first."""
        left = [job for job in reversed(jobs) if job.name not in self.gone]
        return [("evict" if job.start is not None or job.runs else "cancel", job.name) for job in left]
