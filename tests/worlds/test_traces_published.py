"""The recorded files against the published ones; skipped where they are not."""

import shutil

import pandas as pd
import pytest

from marketsched.mechanisms.errors import MissingDataError, UnknownNameError
from marketsched.worlds.traces import DIGESTS, get_trace, verify
from marketsched.worlds.traces.derived import regularity
from refusals import refused


def path_of(name, folder):
    """Return the path of a trace, or skip the test by name."""
    try:
        return get_trace(name).path(folder)
    except MissingDataError:
        pytest.skip(f"no {get_trace(name).file} in the data folder")


@pytest.fixture(scope="module")
def jobs_of_29_days(data_folder):
    path_of("google-jobs", data_folder)
    return get_trace("google-jobs").read(data_folder)


@pytest.mark.parametrize("name", DIGESTS)
def test_a_recorded_file_is_the_published_one(data_folder, name):
    path_of(name, data_folder)
    assert verify(name, data_folder)


def test_a_file_with_one_row_less_is_another(data_folder, tmp_path):
    lines = path_of("pai-machines", data_folder).read_text().splitlines(keepends=True)
    (tmp_path / "pai2020_machines.csv").write_text("".join(lines[:-1]))
    assert not verify("pai-machines", tmp_path)


def test_large_files_stream(data_folder):
    """In blocks, the 29-day file gives the same rows as at once."""
    path_of("google-jobs", data_folder)
    blocks = [block for block in get_trace("google-jobs").stream(data_folder, rows=200_000)]
    assert [len(block) for block in blocks] == [200_000, 200_000, 200_000, 72_074]
    assert sum(block["run_s"].isna().sum() for block in blocks) == 3989


def test_small_files_stream_as_one_block(data_folder, tmp_path):
    shutil.copy(path_of("openb-nodes", data_folder), tmp_path / "openb_node_list_all_node.csv")
    (block,) = get_trace("openb-nodes").stream(tmp_path)
    assert len(block) == 1523


def test_reference_recurring_jobs(jobs_of_29_days):
    known = regularity(jobs_of_29_days).set_index(["user", "group"])[
        ["n_runs", "period_s", "regular_share", "deviation_s"]
    ]
    for job, printed in {
        (270, 11259): (7777, 300.02, 0.993, 0.89),
        (151, 3887): (700, 3599.49, 0.961, 35.55),
        (113, 3706): (348, 7200.02, 1.000, 1.44),
        (181, 7231): (36, 86515.74, 0.800, 126.46),
    }.items():
        assert (abs(known.loc[job].to_numpy() - printed) <= (0, 0.0051, 0.00051, 0.0051)).all()


def test_regularity_by_hand():
    times = {(1, 1): [100, 200, 300, 405, 520], (1, 2): [50], (2, 1): [0, 7, 7, 27]}
    rows = [(u, g, 0, float(t), 0.0, 1.0, 4) for (u, g), ts in times.items() for t in ts]
    columns = ["user", "group", "sched_class", "submit_s", "wait_s", "run_s", "end_event"]
    known = regularity(pd.DataFrame(rows, columns=columns).sort_values("submit_s"))
    assert known["n_runs"].tolist() == [5, 1, 3]  # submissions at 0 do not count
    assert known["period_s"].tolist()[0] == 102.5  # gaps 100, 100, 105, 115
    assert known["regular_share"].tolist()[0] == 0.75  # 115 is 12.5 away
    assert known["deviation_s"].tolist()[0] == 2.5
    assert known["period_s"].isna().tolist() == [False, True, False]
    assert known.loc[2, "period_s"] == 10.0 and known.loc[2, "regular_share"] == 0.0  # gaps 0, 20


def test_an_unknown_trace():
    with pytest.raises(UnknownNameError, match=r"trace 'goggle' is unknown: expected one of google-jobs,"):
        verify("goggle", ".")


def test_verify_says_how_to_name_the_folder(tmp_path):
    refused(lambda: verify("philly-jobs", tmp_path), "--data DIR, or set MARKETSCHED_DATA", error=MissingDataError)
