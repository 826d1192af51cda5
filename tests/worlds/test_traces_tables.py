"""Strict reading of tables: what is right comes out typed, what is wrong is named by file and line."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.mechanisms.errors import MissingDataError, TraceError
from marketsched.worlds.traces import data_folder, get_trace
from marketsched.worlds.traces.tables import read_table, stream_table
from refusals import refused

GOOGLE = get_trace("google-jobs")
JOBS, read_jobs, stream_jobs = GOOGLE.columns, GOOGLE.read, GOOGLE.stream
read_philly, read_nodes, read_pods = (get_trace(name).read for name in ("philly-jobs", "openb-nodes", "openb-pods"))
HEADER = "user,group,sched_class,submit_s,wait_s,run_s,end_event"
ROWS = ["0,0,3,0.0,0.0,,0", "1,5,0,604.05,1.5,60.25,4", "1,5,0,904.05,1.25,61.0,5", "2,6,1,1000.0,,12.5,4"]


def write(folder, rows=ROWS, name="google2011_jobs_29d.csv", header=HEADER, end="\n", line_end="\n"):
    """Write a small file of jobs and return its path."""
    path = folder / name
    text = (line_end.join([header, *rows]) + end).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


@pytest.mark.parametrize("name", ["google2011_jobs_29d.csv", "google2011_jobs_29d.csv.gz"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_small_file(tmp_path, name, end, line_end):
    write(tmp_path, name=name, end=end, line_end=line_end)
    table = read_jobs(tmp_path)
    assert table.dtypes.astype(str).tolist() == ["int32", "int32", "int8", "float64", "float64", "float64", "int8"]
    assert table["user"].tolist() == [0, 1, 1, 2]
    assert table["submit_s"].tolist() == [0.0, 604.05, 904.05, 1000.0]
    assert table["run_s"].isna().tolist() == [True, False, False, False]
    assert table["wait_s"].isna().tolist() == [False, False, False, True]


def test_no_rows(tmp_path):
    path = write(tmp_path, rows=[])
    with pytest.raises(TraceError, match=rf"^{path} has a header and no rows: expected at least one row$"):
        read_jobs(path)
    (table,) = stream_table(path, JOBS)
    assert len(table) == 0
    assert table.dtypes.astype(str).tolist() == ["int32", "int32", "int8", "float64", "float64", "float64", "int8"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1,5,0,604.05,1.5,60.25", r"6 fields in '1,5,0,604.05,1.5,60.25': expected 7"),
        ("1,5,0,604.05,1.5,60.25,4,9", r"8 fields .* expected 7"),
        ("", r"1 fields in '': expected 7"),
        ("x,5,0,604.05,1.5,60.25,4", r"user = 'x': expected a whole number in \[0, 2.14748e\+09\]"),
        ("1.5,5,0,604.05,1.5,60.25,4", r"user = '1.5': expected a whole number"),
        (",5,0,604.05,1.5,60.25,4", r"user = '': expected a whole number"),
        ("-1,5,0,604.05,1.5,60.25,4", r"user = '-1': expected a whole number"),
        ("3000000000,5,0,604.05,1.5,60.25,4", r"user = '3000000000': expected a whole number"),
        ("1,5,4,604.05,1.5,60.25,4", r"sched_class = '4': expected a whole number in \[0, 3\]"),
        ("1,5,0,,1.5,60.25,4", r"submit_s = '': expected a number >= 0"),
        ("1,5,0,nan,1.5,60.25,4", r"submit_s = 'nan': expected a number >= 0"),
        ("1,5,0,inf,1.5,60.25,4", r"submit_s = 'inf': expected a number >= 0"),
        ("1,5,0,604.05,1.5,-60.25,4", r"run_s = '-60.25': expected a number >= 0, or nothing"),
        ("1,5,0,604.05,1.5,sixty,4", r"run_s = 'sixty': expected a number >= 0, or nothing"),
        ('"1,5,0,604.05,1.5,60.25,4', r"user = '\"1': expected a whole number"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_malformed_row_is_named(tmp_path, row, said, before):
    path = write(tmp_path, rows=[*ROWS[:before], row, ROWS[1]])
    with pytest.raises(TraceError, match=rf"^{path}:{before + 2}: {said}"):
        read_jobs(tmp_path)


@pytest.mark.parametrize("header", ["", "user,group", HEADER.replace("user", "usr"), HEADER + ",more"])
def test_another_header(tmp_path, header):
    path = write(tmp_path, header=header)
    with pytest.raises(TraceError, match=rf"^{path}:1: header .*: expected 'user,group,sched_class,"):
        read_jobs(tmp_path)


def test_an_empty_file(tmp_path):
    path = tmp_path / "google2011_jobs_29d.csv.gz"
    path.touch()
    with pytest.raises(TraceError, match=rf"^{path}:1: header ''"):
        read_jobs(tmp_path)


def test_two_rows_that_lend_each_other_a_field(tmp_path):
    """The number of commas is right, the rows are not."""
    write(tmp_path, rows=["1,5,0,604.05,1.5,60.25,4,7", "1,5,0,604.05,1.5,60.25"])
    refused(lambda: read_jobs(tmp_path), ":2: 8 fields", error=TraceError)


def test_blocks_before_the_cut_are_delivered(tmp_path):
    """Streaming is lazy: what can be read is yielded before the error."""
    rng = np.random.default_rng(0)
    rows = [
        f"{u},5,0,{s:.2f},1.5,60.25,4" for u, s in zip(rng.integers(0, 99, 50_000), rng.random(50_000), strict=True)
    ]
    path = write(tmp_path, rows=rows, name="google2011_jobs_29d.csv.gz")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * 0.9)])
    seen = 0
    with pytest.raises(TraceError, match="cut short"):
        for block in stream_jobs(tmp_path, rows=1000):
            seen += len(block)
    assert 30_000 < seen < 50_000


@pytest.mark.parametrize("content", [b"not gzip at all\n", gzip.compress(b"x" * 1000)[:20] + b"\0" * 200])
def test_a_damaged_gzip(tmp_path, content):
    path = tmp_path / "google2011_jobs_29d.csv.gz"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=rf"^{path}: the gzip file is damaged"):
        read_jobs(tmp_path)


@pytest.mark.slow
@given(n_rows=st.integers(1, 30), rows_a_block=st.integers(1, 12), blanks=st.integers(0, 5))
def test_streaming_gives_the_same_table(tmp_path_factory, n_rows, rows_a_block, blanks):
    folder = tmp_path_factory.mktemp("stream")
    path = write(folder, rows=[f"{i},5,0,{i}.5,,1.0,4" for i in range(n_rows)], end="\n" * (1 + blanks))
    blocks = list(stream_table(path, JOBS, rows_a_block))
    assert all(len(block) == rows_a_block for block in blocks[:-1])
    pd.testing.assert_frame_equal(pd.concat(blocks), read_table(path, JOBS), check_index_type=False)
    assert len(read_table(path, JOBS)) == n_rows


@given(before=st.integers(0, 9), blanks=st.integers(1, 9), rows_a_block=st.integers(1, 7))
def test_blank_lines_inside_are_an_error(tmp_path_factory, before, blanks, rows_a_block):
    row = "1,5,0,2.5,,1.0,4"
    path = write(tmp_path_factory.mktemp("blank"), rows=[row] * before + [""] * blanks + [row])
    with pytest.raises(TraceError, match=rf":{before + 2}: 1 fields"):
        list(stream_table(path, JOBS, rows_a_block))


def test_missing_file(tmp_path):
    with pytest.raises(
        MissingDataError, match=r"google2011_jobs_29d.csv.gz: no such file: .*--data DIR.*MARKETSCHED_DATA"
    ):
        read_jobs(tmp_path)


def test_missing_folder(tmp_path, monkeypatch):
    with pytest.raises(MissingDataError, match=r"nowhere: no such folder: .*--data DIR.*MARKETSCHED_DATA"):
        data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("MARKETSCHED_DATA", str(tmp_path / "nowhere"))
    refused(read_jobs, "nowhere (from MARKETSCHED_DATA): no such folder", error=MissingDataError)


@pytest.mark.parametrize("value", [None, ""])
def test_no_folder_named(monkeypatch, value):
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("MARKETSCHED_DATA", value)
    with pytest.raises(
        MissingDataError, match=r"^no data folder: .*--data DIR, or set MARKETSCHED_DATA; .marketsched traces. lists"
    ):
        data_folder()


def test_the_folder_of_the_environment(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setenv("MARKETSCHED_DATA", str(tmp_path))
    assert len(read_jobs()) == 4
    other = tmp_path / "other"
    other.mkdir()
    write(other, rows=ROWS[:2])
    assert len(read_jobs(other)) == 2  # an explicit folder wins


def test_words_and_times(tmp_path):
    (tmp_path / "philly2017_jobs.csv").write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
    )
    table = read_philly(tmp_path)
    assert table["timestamp"].tolist() == [pd.Timestamp("2017-10-09 07:01:55")]
    assert str(table["timestamp"].dtype) == "datetime64[s]"
    assert table["cluster"].tolist() == ["11cb48"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("2017-10-09,66.0,1,66.0,11cb48", r"timestamp = '2017-10-09': expected a time YYYY-MM-DD HH:MM:SS"),
        ("2017-13-09 07:01:55,66.0,1,66.0,11cb48", r"timestamp = '2017-13-09 07:01:55': expected a time"),
        ("2017-10-09 07:01:55,66.0,1,66.0,", r"cluster = '': expected a word"),
        ("2017-10-09 07:01:55,66.0,0,66.0,11cb48", r"num_gpus = '0': expected a whole number in \[1"),
    ],
)
def test_malformed_words_and_times(tmp_path, row, said):
    path = tmp_path / "philly2017_jobs.csv"
    path.write_text(f"timestamp,duration,num_gpus,gpu_time,cluster\n{row}\n")
    with pytest.raises(TraceError, match=rf"^{path}:2: {said}"):
        read_philly(tmp_path)


def test_files_under_their_published_names(tmp_path):
    (tmp_path / "openb_node_list_all_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\n")
    nodes = read_nodes(tmp_path)
    assert nodes.to_dict("records") == [{"sn": "n0", "cpu_milli": 32000, "memory_mib": 262144, "gpu": 0, "model": ""}]
    header = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    (tmp_path / "openb_pod_list_default.csv").write_text(f"{header}\np0,12000,16384,1,1000,,LS,Pending,0,10,\n")
    (pod,) = read_pods(tmp_path).to_dict("records")
    assert pod["gpu_spec"] == "" and np.isnan(pod["scheduled_time"]) and pod["pod_phase"] == "Pending"
