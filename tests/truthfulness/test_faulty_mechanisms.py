"""The planted faults are real: each mechanism runs, and its witness market gains what was worked out by hand."""

import itertools

import pytest

from faulty_mechanisms import FAULTS, seed_of, witness_market
from marketsched.mechanisms import EventKind, Mechanism, StatementOfWork, get_mechanism

every_fault = pytest.mark.parametrize("fault", FAULTS)


def expected_utility(factory, witness, report, delay=0):
    """Play the market for every joint outcome of the others; return the owner's expected utility."""
    total = 0.0
    outcomes = [
        [(r.arrival, r.duration, r.probability) for r in sow.requirements] + [(None, 1, 1 - sow.mass)]
        for sow in witness.others
    ]
    ((arrival, duration, _, _),) = [
        (r.arrival, r.duration, r.probability, r.signal) for r in witness.truth.requirements
    ]
    for joint in itertools.product(*outcomes):
        weight = 1.0
        for _, _, p in joint:
            weight *= p
        if weight == 0:
            continue
        market = factory(**witness.parameters, rng=0)
        jobs = {f"rival {i}": (sow, a, d) for i, (sow, (a, d, _)) in enumerate(zip(witness.others, joint, strict=True))}
        jobs["owner"] = (report, arrival, duration)
        running, utility = {}, 0.0
        for now in range(1, witness.parameters["horizon"] + 1):
            for name, (sow, _, _) in jobs.items():
                if sow.birth == now:
                    market.submit(name, sow)
            for name, (_, a, d) in jobs.items():
                if a == now:
                    market.arrive(name, d)
            for event in market.advance():
                if event.kind is EventKind.START:
                    running[event.job] = now
                elif event.kind is EventKind.EVICT:
                    running.pop(event.job)
            for name, start in list(running.items()):
                if start + jobs[name][2] == now + 1:
                    event = market.complete(name)
                    del running[name]
                    if name == "owner" and report.concurrency >= witness.truth.concurrency:
                        utility += float(witness.truth.value(now + 1)) - event.payment
        total += weight * utility
    return total


@every_fault
def test_the_lie_pays_what_was_worked_out(fault):
    witness = witness_market(fault)
    assert expected_utility(FAULTS[fault], witness, witness.truth) == pytest.approx(witness.truthful)
    assert expected_utility(FAULTS[fault], witness, witness.lie) == pytest.approx(witness.lying)
    assert witness.lying > witness.truthful
    assert witness.lie.birth == witness.truth.birth + witness.delay


@every_fault
def test_without_the_fault_it_does_not_pay(fault):
    witness = witness_market(fault)

    def clean(**parameters):
        return get_mechanism("posted-price", **parameters)

    truth, lie = (expected_utility(clean, witness, report) for report in (witness.truth, witness.lie))
    assert lie <= truth + 1e-9


@every_fault
def test_they_follow_the_protocol(fault):
    assert isinstance(FAULTS[fault](**witness_market(fault).parameters), Mechanism)


def test_reports_that_differ_have_seeds_that_differ():
    witness = witness_market("oracle seed depends on the report")
    assert isinstance(witness.truth, StatementOfWork)
    assert seed_of(witness.truth) != seed_of(witness.lie)
