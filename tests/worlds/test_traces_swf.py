"""Logs in Standard Workload Format."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError, TraceError
from marketsched.worlds.traces import get_trace
from marketsched.worlds.traces.swf import FIELDS, read_swf, stream_swf
from refusals import refused

HEADER = """; Version: 2.2
; Computer: Linux cluster (Seth)
; Acknowledge: Ake Sandgren
; Information: http://one/
;              http://two/
; Note: uses MAUI scheduler
;
"""
JOB = "    1        0 308434  31405   30  31405.5    -1   30  37980    -1  1   1   1  -1 -1  1 -1 -1"
NEVER_RAN = "2 8 308426 -1 30 -1 -1 30 37980 -1 -1 1 1 -1 -1 1 -1 -1"


def write(folder, lines, name="log.swf"):
    """Write a log and return its path."""
    path = folder / name
    text = (HEADER + "\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
def test_a_small_log(tmp_path, name):
    path = write(tmp_path, [JOB, "; a comment between", NEVER_RAN, "", ""], name)
    table = read_swf(path)
    assert table.dtypes.astype(str).to_dict() == FIELDS
    assert table["job"].tolist() == [1, 2]
    assert table.loc[0, ["submit_s", "wait_s", "run_s", "cpu_s"]].tolist() == [0, 308434, 31405, 31405.5]
    assert np.isnan(table.loc[1, "run_s"]) and table.loc[1, "status"] == -1  # measured: NaN; a code: -1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (JOB[:-3], "17 fields: expected 18 numbers"),
        (JOB.replace("308434", "soon"), "wait_s = 'soon': expected a number >= 0, or -1"),
        (JOB.replace("308434", "nan"), "wait_s = 'nan'"),
        (JOB.replace("308434", "-2"), "wait_s = '-2'"),
        (JOB.replace(" 37980", " inf"), "requested_s = 'inf'"),
        (JOB.replace("   30  31405", "  3.5  31405"), "processors = '3.5': expected a whole number >= 0, or -1"),
    ],
)
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_a_malformed_line_is_named(tmp_path, line, said, rows):
    path = write(tmp_path, [JOB, "", line, JOB])
    with pytest.raises(TraceError, match=rf"^{path}:10: {said}"):
        list(stream_swf(path, rows))


def test_fields_behind_the_eighteenth_are_passed_over(tmp_path):
    """As the KIT and METACENTRUM logs have them; more text in them is no fault either."""
    plain = read_swf(write(tmp_path, [JOB, NEVER_RAN]))
    pd.testing.assert_frame_equal(read_swf(write(tmp_path, [JOB + " 7", NEVER_RAN + " 8 -3 gpu"])), plain)


def test_faulty_lines_are_left_out_and_noted(tmp_path):
    faults = []
    path = write(tmp_path, [JOB, JOB.replace("31405 ", "-2 ", 1), NEVER_RAN, "1 2 3"])
    for rows in (1, 3, 100):
        faults = []
        table = pd.concat(stream_swf(path, rows, faults))
        assert table["job"].tolist() == [1, 2] and [each.line for each in faults] == [9, 11]
    assert [each.what for each in faults] == [
        "run_s = '-2': expected a number >= 0, or -1",
        "3 fields: expected 18 numbers",
    ]


def test_lines_that_lend_each_other_a_field(tmp_path):
    path = write(tmp_path, [JOB[:-3], JOB + " 7"])
    with pytest.raises(TraceError, match=rf"^{path}:8: 17 fields"):
        read_swf(path)


@given(n_jobs=st.integers(0, 20), rows=st.integers(1, 9))
def test_streaming_gives_the_same_table(tmp_path_factory, n_jobs, rows):
    path = write(tmp_path_factory.mktemp("swf"), [JOB, NEVER_RAN] * n_jobs)
    blocks = pd.concat(stream_swf(path, rows))
    pd.testing.assert_frame_equal(blocks, read_swf(path), check_index_type=False)
    assert blocks.index.tolist() == list(range(2 * n_jobs))


def test_an_empty_or_missing_file(tmp_path):
    (tmp_path / "empty.swf").touch()
    refused(lambda: read_swf(tmp_path / "empty.swf"), "empty.swf: the file is empty", error=TraceError)
    refused(lambda: read_swf(tmp_path / "none.swf"), "none.swf: No such file", error=MissingDataError)
    refused(lambda: next(stream_swf(tmp_path / "empty.swf", 0)), place="rows", seen=0, error=InvalidParameterError)


def test_a_truncated_gzip(tmp_path):
    path = write(tmp_path, [JOB] * 5000, "nasa_ipsc_1993.swf.gz")
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(TraceError, match=rf"^{path}: the gzip file is cut short"):
        get_trace("nasa-ipsc").read(tmp_path)
