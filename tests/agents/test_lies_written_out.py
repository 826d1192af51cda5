"""Every lie of lies.txt, beside what it says of four jobs: its words, its size, its range, and all that it changes.

To renew the text after a change that is meant: `python tests/agents/test_lies_written_out.py`, and read its diff.
"""

from dataclasses import replace
from pathlib import Path

from marketsched.agents.conduct import Conduct
from marketsched.agents.lies.base import Combination, Misreport, Truthful, misreport_from
from marketsched.agents.lies.finer import (
    AddDuration,
    AddStep,
    ClaimCheckpoints,
    ClaimRestarts,
    CopyLaw,
    EndValue,
    MoveDigit,
    RewriteCurve,
)
from marketsched.agents.lies.needs import (
    ABSENT,
    InflateConcurrency,
    LeaveOut,
    MoveMass,
    ScaleDuration,
    ScaleMass,
    ShiftArrival,
    SpreadArrival,
    SpreadDuration,
)
from marketsched.agents.lies.outside_model import DelaySubmission
from marketsched.agents.lies.shapes import (
    AddDummyShape,
    AddKind,
    ClaimWorth,
    LeaveOutKind,
    LeaveOutShape,
    PutShapeFirst,
    ScaleDemand,
    ScaleTasks,
    StretchOnKind,
    SwapKinds,
    TasksPerNode,
)
from marketsched.agents.lies.strategy import PublicInformation, submission_delay
from marketsched.agents.lies.values import CutDeadline, ScaleValue, ShiftDeadline, ShiftValue
from marketsched.agents.lies.withdrawing import Withdraw, WithdrawTwin
from marketsched.agents.loop import Fate
from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.shapes import Shape
from node_requests import CPU, GPU

PLACE = Path(__file__).with_name("lies.txt")
GROUPS = [
    NodeGroup("a", "a", 2, {"cpu": 8, "gpu": 2}),
    NodeGroup("c", "c", 2, {"cpu": 8}),
    NodeGroup("d", "d", 1, {"cpu": 4}),
]
CLUSTER = Cluster((CPU, GPU), GROUPS)
SHAPES = [Shape({"cpu": 2, "gpu": 1}, {"a": (1, 4)}, tasks=2), Shape({"cpu": 3}, {"c": (2, 5), "a": (3, 6)}, worth=0.5)]
CERTAIN = StatementOfWork(1, 1, TableValue({4: 6.0, 5: 3.0}), [(2, 2, 1.0)])
JOBS = {
    "line": StatementOfWork(2, 2, LinearValue(8.0, 6, 1.5, 11), [(3, 2, 0.5), (4, 4, 0.25), (6, 1, 0.125)]),
    "deadline": StatementOfWork(
        4, 3, DeadlineValue(5.0, 12), [(5, 1, 0.25, None), (5, 4, 0.75, None)], checkpoint=2, patience=3
    ),
    "table": StatementOfWork(1, 1, TableValue({4: 6.25, 5: 3.0, 7: 1.0}), [(2, 3, 1.0)]),
    "shapes": StatementOfWork.of_shapes(2, DeadlineValue(6.0, 12), 3, SHAPES, (0.75, 0.25), revealed=False),
}
OPEN = PublicInformation(8, 40, 12, cluster=CLUSTER, others=(CERTAIN, JOBS["line"]))  # no limits announced
TIGHT = replace(OPEN, max_concurrency=4, max_duration=6, max_value=20.0, horizon=10)

LIES: dict[str, list[Misreport]] = {
    "line": [
        Truthful(),
        *map(ScaleValue, (0.0, 0.99995, 2.0, 3.0)), ShiftValue(-2.0), ShiftValue(15.0),
        *map(ShiftDeadline, (-7, -3, -1, 2)), *map(CutDeadline, (2, 4, 9)),
        *map(InflateConcurrency, (-2, -1, 1, 3)), *map(ScaleDuration, (0.2, 0.6, 1.5, 2.0)),
        SpreadDuration(1), SpreadDuration(3, 0.5), ShiftArrival(-1), ShiftArrival(2), SpreadArrival(2),
        SpreadArrival(1, 0.25), ScaleMass(0.5), ScaleMass(8 / 7), ScaleMass(1.2),
        MoveMass(0, 2, 0.5), MoveMass(ABSENT, 1), MoveMass(1, ABSENT), MoveMass(1, 3), MoveMass(3, 1),
        LeaveOut((1,)), LeaveOut((2, 0), 0.5, True), LeaveOut((0, 1, 2), 0.25), LeaveOut((0, 1, 2)), LeaveOut((3,)),
        MoveDigit(-3, 0), MoveDigit(4, 2), MoveDigit(-9, 0), EndValue(), EndValue(0.5, 10.0, 0.0),
        EndValue(1.0, 1.0, 9.5),
        AddStep(0.25), *map(RewriteCurve, range(4)), ClaimRestarts(), ClaimCheckpoints(3),
        AddDuration(3, 0.5), AddDuration(-1), AddDuration(2, 0.5), CopyLaw(0), CopyLaw(2),
        *map(DelaySubmission, (1, 3, 12)),
        Withdraw(), Withdraw(1), WithdrawTwin(2), Combination((ScaleValue(0.5), ShiftArrival(1), Withdraw(3))),
    ],
    "deadline": [
        ScaleValue(2.0), ScaleValue(9.0), ShiftValue(1.0), ShiftDeadline(-13), ShiftDeadline(3), CutDeadline(1),
        InflateConcurrency(2), ScaleDuration(3.0), SpreadDuration(2, 0.5), MoveMass(1, 0, 0.2),
        LeaveOut((0,), 1.0, True),
        MoveDigit(2), EndValue(1.0, 1.0, 0.0), AddStep(1.0), RewriteCurve(2), ClaimRestarts(), ClaimCheckpoints(0),
        AddDuration(1, 0.2), CopyLaw(1), DelaySubmission(2),
    ],
    "table": [
        ScaleValue(4.0), ShiftValue(-1.5), ShiftDeadline(2), ShiftDeadline(-2), CutDeadline(5), CutDeadline(8),
        MoveDigit(1, 1), EndValue(), AddStep(0.5), RewriteCurve(0), AddDuration(2), CopyLaw(1),
    ],
    "shapes": [
        LeaveOutShape(0), LeaveOutShape(1), LeaveOutShape(2), PutShapeFirst(1), LeaveOutKind("a"), LeaveOutKind("c"),
        AddKind("c", 2.0), AddKind("d"),
        AddKind("d", 1.75), SwapKinds("a", "c"), StretchOnKind("a", 1.5), StretchOnKind("c", 0.1),
        ScaleDemand("gpu", 0.25), ScaleDemand("gpu", 1.5), ScaleDemand("cpu", 1.25), ScaleDemand("x", 2.0),
        ScaleTasks(2.0), ScaleTasks(0.2), TasksPerNode(1), AddDummyShape(), AddDummyShape(True), ClaimWorth(1, 0.75),
        ScaleDuration(2.0), CopyLaw(0), AddDuration(1), InflateConcurrency(1), ShiftArrival(1),
    ],
}  # fmt: skip


def curve_of(curve):
    if isinstance(curve, TableValue):
        return "table " + ", ".join(f"{t}: {v:.10g}" for t, v in curve.values.items())
    if isinstance(curve, LinearValue):
        return f"line {curve.value:.10g} from {curve.start} by {curve.slope:.10g} until {curve.deadline}"
    return f"{curve.value:.10g} until {curve.deadline}"


def shape_of(shape):
    on = ", ".join(f"{kind}: {list(durations)}" for kind, durations in shape.on.items())
    needs = " + ".join(f"{amount:.10g} {name}" for name, amount in shape.each.items())
    limit = "" if shape.per_node is None else f", {shape.per_node} a node"
    return f"{shape.tasks} x ({needs}{limit}) on {on} for {shape.worth:.10g}"


def parts_of(report):
    law = ", ".join(f"({r.arrival}, {r.duration}; {r.signal}) {r.probability:.10g}" for r in report.requirements)
    return {
        "birth": report.birth, "nodes": report.concurrency, "value": curve_of(report.value), "law": law,
        **report.terms, "shapes": "; ".join(map(shape_of, report.shapes)),
    }  # fmt: skip


def changes(report, truth):
    """Return in words what of a report is not the truth's."""
    own, new = parts_of(truth), parts_of(report)
    return " | ".join(f"{name} {new[name]}" for name in new if new[name] != own[name]) or "the truth"


def fates(part):
    """Return what becomes of a job that arrives in round 3, and shows four rounds, or that they are long."""
    found = [part(Fate(3, 4, signal)) for signal in (4, "long")]
    return "; ".join("none" if x is None else f"{x.arrival} {x.duration} {x.signal}" for x in found)


def played(conduct: Conduct, truth):
    """Return lines for all statements, if the conduct is more than one report of the whole job at birth."""
    plain = len(conduct.statements) == 1 and fates(conduct.statements[0].part) == fates(lambda job: job)
    if plain and conduct.statements[0].withdrawn is None:
        return []
    lines = []
    for each in conduct.statements:
        text = changes(each.report, truth)
        more = ["beside the job"] * (not each.counts)
        more += [f"withdrawn in {each.withdrawn}"] * (each.withdrawn is not None)
        lines.append(f"      {each.name or 'own'} in {each.round}, {each.nodes} nodes, fates {fates(each.part)}"
                     f"{', '.join(['', *more])}: {text}")  # fmt: skip
    return lines


def written():
    lines = []
    for name, lies in LIES.items():
        truth = JOBS[name]
        lines.append(f"{name}: " + " | ".join(f"{key} {part}" for key, part in parts_of(truth).items()))
        for lie in lies:
            if not legal(lie, truth):
                lines.append(f"  {lie!r} [{lie.kind}]: {reported(lie, truth, OPEN)}")
                continue
            marks = (
                [lie.kind]
                + ["outside"] * (not lie.inside_model)
                + [f"{submission_delay(lie)} late"] * (submission_delay(lie) > 0)
            )
            lines.append(f"  {lie.words(truth)}, size {lie.distance(truth, TIGHT):.10g} [{' '.join(marks)}]")
            ranges = ", ".join(f"{name} {low:.10g} to {high:.10g}" for name, (low, high) in lie.near().items())
            lines += [f"      near {ranges}"] * bool(ranges)
            found = [reported(lie, truth, public) for public in (TIGHT, OPEN)]
            lines += [f"      {' OPEN: '.join(dict.fromkeys(found))}"]
            lines += played(lie.conduct(truth, truth, OPEN), truth)
    return lines


def legal(lie, truth):
    return not reported(lie, truth, OPEN).startswith("refused")


def reported(lie, truth, public):
    try:
        lie.conduct(truth, truth, public)
        lie.check(truth, public)
        return changes(lie.report(truth, public), truth)
    except InvalidReportError as error:
        return f"refused: {error}"


def test_lies_say_what_is_written():
    assert "\n".join(written()) + "\n" == PLACE.read_text()


class Rounded(ScaleValue):
    """A lie of a user's own, without a kind."""


def test_lies_come_back_from_data_with_other_numbers_too():
    assert type(misreport_from(Rounded(2.0).data())) is ScaleValue
    for lie in (lie for lies in LIES.values() for lie in lies):
        assert misreport_from(lie.data()) == lie
        for name, ends in lie.near().items():
            assert ends[0] <= ends[1]
            for end in ends:
                lie.with_values({name: end})  # a legal one


if __name__ == "__main__":
    PLACE.write_text("\n".join(written()) + "\n")
