"""The benchmark: the same bytes twice, a lie that is there is confirmed, and none where there is none."""

import json

import pytest

import benchmark_contestants  # noqa: F401 - registers them
from marketsched.benchmark import contestants, own_tasks
from marketsched.benchmark.scoring import Plan, scored
from marketsched.benchmark.tasks import Task
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from refusals import refused

OWNERS = 10
NAMES = ["first-come", "nobody-served", "pay-as-bid", "breaks", "not-to-be-copied"]


def tiny():
    content = {"kind": "synthetic-pipelines", "recurring_jobs": 20, "birth_rounds": 12}
    return Task("tiny", Scenario.from_dict({"name": "tiny", "workload": content}), (1.0, 1.5))


def plan(runs, owners):
    return Plan((tiny(),), runs, owners)


@pytest.fixture(scope="module")
def found():
    return scored(NAMES, plan(2, OWNERS))


@pytest.mark.slow
def test_scores(found):
    rows = found.summary.set_index("contestant")
    said = rows.loc["breaks", "refused"]
    assert said == f"tiny, load 1, seed {tiny().seed(0)}: Breaks in round 6: RuntimeError: no idea"
    assert rows.loc["breaks", "welfare_high"] == 0 and rows.loc["breaks", "lie"] == said
    assert f"| `breaks` | 0.0 | 0.0 (0.0 to 0.0) | not measured | {said} |" in found.texts["table.md"]
    assert rows.loc["nobody-served", "welfare_high"] == 0
    assert 0.5 < rows.loc["first-come", "welfare_mean"] <= 1 + 1e-9
    assert len(found.tables["cells"]) == len(NAMES) * 2 * 2
    assert rows.loc["first-come", "lie"] == "" and rows.loc["first-come", "lying_gain"] == 0  # it is truthful
    assert "cannot be pickled" in rows.loc["not-to-be-copied", "lie"]
    assert "not measured" in found.texts["table.md"]
    lie = rows.loc["pay-as-bid"]
    assert lie["lie"] == "value: times 0.5" and lie["lying_low"] > 0
    assert lie["lying_gain"] == pytest.approx(0.5, abs=0.15)  # half of what it would have paid, of jobs that run


@pytest.mark.slow
def test_one_json_a_contestant_and_the_same_bytes_alone_or_among_others(found, tmp_path):
    alone = scored(["pay-as-bid"], plan(2, OWNERS))
    assert alone.texts["pay-as-bid.json"] == found.texts["pay-as-bid.json"]
    record = json.loads(alone.texts["pay-as-bid.json"])
    assert record["benchmark"] == "marketsched benchmark 1" and len(record["cells"]) == 4
    again = scored(NAMES, plan(2, OWNERS))
    found.save(tmp_path / "a")
    again.save(tmp_path / "b")
    for path in sorted((tmp_path / "a").iterdir()):
        if path.name != "timings.json":
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
    assert "| `pay-as-bid` |" in found.texts["table.md"] and "**" in found.texts["table.md"]
    assert found.view() is not None


def test_too_few_owners_for_a_choice_are_no_absence_of_lies():
    found = scored(["pay-as-bid"], plan(2, 4))
    assert found.summary["lie"].tolist() == ["at most 4 owners could play a lie: 8 wanted, more owners or runs"]
    assert "| not measured |" in found.texts["table.md"]


def test_files_of_names_that_are_written_alike_are_kept_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    rule = "from marketsched.mechanisms.auctions.pay_as_bid import PayAsBid as {}\n"
    for file, name in (("a/alike.py", "Mine"), ("a-alike.py", "Mine")):
        (tmp_path / file).write_text(rule.format(name))
    found = scored(["a/alike.py:Mine", "a-alike.py:Mine"], plan(2, 1))
    records = [json.loads(text) for name, text in found.texts.items() if name.endswith(".json")]
    assert {each["contestant"] for each in records} == {"a/alike.py:Mine", "a-alike.py:Mine"}
    assert all(list(each["files"]) == [each["contestant"].partition(":")[0]] for each in records)


@pytest.mark.slow
def test_a_lie_that_is_there_is_named():
    found = scored(["pay-as-bid"], plan(2, OWNERS))
    assert found.summary["lie"].tolist() == ["value: times 0.5"]
    assert "| `pay-as-bid` |" in found.texts["table.md"]


def test_who_takes_part_and_what_is_refused():
    assert {"first-come", "fair-share", "kueue", "kai", "two-offers"} <= set(contestants())
    assert len({task.seed(number) for task in own_tasks() for number in range(50)}) == 150
    refused(lambda: scored(["first-come"], plan(1, 4)), place="runs", seen=1, error=InvalidParameterError)


def test_an_interrupted_benchmark_goes_on_with_the_next_contestant(tmp_path):
    begun = []

    def end_at_the_second(done, total, what):
        begun.append(what)
        if what.startswith("first-come"):
            raise KeyboardInterrupt

    names = ["nobody-served", "first-come"]
    with pytest.raises(KeyboardInterrupt):
        scored(names, plan(2, 1), keep=tmp_path, progress=end_at_the_second)
    assert any(what.startswith("nobody-served") for what in begun)
    played = []
    found = scored(names, plan(2, 1), keep=tmp_path, progress=lambda done, total, what: played.append(what))
    assert not any(what.startswith("nobody-served") for what in played)
    assert found.texts == scored(names, plan(2, 1)).texts
    found.save(tmp_path / "scores")
    assert [path.name for path in tmp_path.iterdir()] == ["scores"]


@pytest.mark.slow
def test_scores_do_not_depend_on_the_number_of_processes():
    names = ["first-come", "pay-as-bid", "easy-backfill"]
    assert scored(names, plan(2, 8), workers=2).texts == scored(names, plan(2, 8)).texts
