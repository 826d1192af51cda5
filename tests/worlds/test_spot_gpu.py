"""Alibaba's cluster with spot GPUs and SkyPilot's series, on small samples made in their formats."""

import json

import pandas as pd
import pytest

from marketsched.config.scenario import Scenario
from marketsched.cores.worlds.records import series_availability
from marketsched.mechanisms.errors import InvalidParameterError, TraceError
from marketsched.play.running import run
from marketsched.worlds.logs.formats import format_of
from marketsched.worlds.logs.trace_logs import spot_gpu_log
from marketsched.worlds.traces import get_trace
from marketsched.worlds.traces.spot_series import read_spot_series

JOBS = """job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
1,13,A10,20.0,1.0,1,0.0,2764799.0,HP
2,13,A10,8.0,0.3,4,60.0,600.0,HP
3,57,A100-SXM4-80GB,15.0,8.0,16,120.0,41060.0,Spot
4,57,A100-SXM4-80GB,15.0,1.5,2,180.0,71718.0,Spot
5,,A10,4.0,1.0,1,240.0,,Spot
"""
NODES = "gpu_model,gpu_capacity_num,cpu_num,node_name\nGPU-series-1,4,192,0\nA10,1,128,1\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job_info_df.csv").write_text(JOBS)
    (tmp_path / "node_info_df.csv").write_text(NODES)
    return tmp_path


def zone(path, data, gap=300, **more):
    path.write_text(json.dumps({"metadata": {"gap_seconds": gap}, "data": data, **more}))
    return path


def test_jobs_with_spot_gpus_are_a_log(folder):
    log = spot_gpu_log(folder / "job_info_df.csv")
    assert format_of(folder / "job_info_df.csv") == "spot-gpu"
    assert log.table["processors"].tolist() == [1, 4, 128, 4]  # a worker with 0.3 of a GPU takes one, with 1.5 two
    assert log.table["urgency"].tolist() == [2, 2, 0, 0] and log.table["user"].tolist() == ["13", "13", "57", "57"]
    assert log.table["queue"].tolist() == ["A10", "A10", "A100-SXM4-80GB", "A100-SXM4-80GB"]
    assert dict(log.counted) == {"rows left out: no run time": 1}
    mine = {"name": "spot", "mechanism": {"name": "easy-backfill"}, "workload": {"kind": "spot-gpu", "load": 1.0}}
    assert run(Scenario.from_dict(mine), data=folder).outcome["jobs"] == 4


def test_columns_are_read_in_any_order(folder):
    """The file of nodes names its columns in another order than its description does."""
    nodes = get_trace("spot-gpu-nodes").read(folder)
    assert nodes.to_dict("list") == {
        "node_name": [0, 1],
        "gpu_model": ["GPU-series-1", "A10"],
        "gpu_capacity_num": [4, 1],
        "cpu_num": [192, 128],
    }
    table = pd.read_csv(folder / "job_info_df.csv")
    table[table.columns[::-1]].to_csv(folder / "job_info_df.csv", index=False)
    assert spot_gpu_log(folder / "job_info_df.csv").table["processors"].tolist() == [1, 4, 128, 4]
    (folder / "node_info_df.csv").write_text(NODES.replace("cpu_num", "cpus"))
    with pytest.raises(TraceError, match=r"node_info_df.csv:1: header .*: expected 'node_name,gpu_model"):
        get_trace("spot-gpu-nodes").read(folder)
    (folder / "node_info_df.csv").write_text(NODES.replace(",4,192", ",-4,192"))
    with pytest.raises(TraceError, match=r"node_info_df.csv:2: gpu_capacity_num = '-4': expected a whole number in"):
        get_trace("spot-gpu-nodes").read(folder)


BAD = {
    "cut short": ('{"metadata": {"gap_seconds": 300}, "data": [1, 0', r"zone.json:1: .*: expected a JSON object with"),
    "no object": ("[1, 0]", "zone.json: list: expected a JSON object with"),
    "no gap": ('{"data": [1]}', "zone.json: metadata.gap_seconds = None: expected a number > 0"),
    "no data": ('{"metadata": {"gap_seconds": 300}}', "zone.json: data = None: expected a list of numbers >= 0"),
    "empty": ('{"metadata": {"gap_seconds": 300}, "data": []}', r"zone.json: data = \[\]: expected a list"),
    "negative": (
        '{"metadata": {"gap_seconds": 300}, "data": [1, -1]}',
        r"zone.json: data\[1\] = -1: expected a finite",
    ),
    "half": ('{"metadata": {"gap_seconds": 300}, "data": [1, 0.5]}', r"zone.json: data\[1\] = 0.5: expected a whole"),
    "text": ('{"metadata": {"gap_seconds": 300}, "data": [1, "x"]}', r"zone.json: data\[1\] = 'x': expected a finite"),
    "not finite": (
        '{"metadata": {"gap_seconds": 300}, "data": [NaN]}',
        r"zone.json: data\[0\] = nan: expected a finite",
    ),
    "prices": ('{"metadata": {"gap_seconds": 300}, "data": [1, 0], "prices": [1]}', "zone.json: prices = '1 entries'"),
    "a long number": (
        '{"metadata": {"gap_seconds": 300}, "data": [' + "9" * 9999 + "]}",
        "zone.json: a number or a list",
    ),
    "brackets": ("[" * 200_000, "zone.json: a number or a list too deep"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_series_is_one_line(tmp_path, fault):
    text, message = BAD[fault]
    (tmp_path / "zone.json").write_text(text)
    with pytest.raises(TraceError, match=message) as error:
        read_spot_series(tmp_path / "zone.json")
    assert "\n" not in str(error.value) and len(str(error.value)) < 600
    (tmp_path / "zone.json").write_bytes("[1]".encode("utf-16"))
    with pytest.raises(TraceError, match=r"zone.json: byte 0xff at 0: expected a JSON object .* UTF-8"):
        read_spot_series(tmp_path / "zone.json")


def test_series_are_machines_that_come_and_go(tmp_path):
    zone(tmp_path / "a.json", [0, 2, 1, 0])
    zone(tmp_path / "b.json", [1, 1, 0, 1], gap=600)
    found = series_availability(["a.json", "b.json"], tmp_path, slots=2, slot_seconds=600)
    assert found.tolist() == [[0.5, 0.5, 1.0], [0.5, 0.0, 1.0]]
    with pytest.raises(InvalidParameterError, match=r"slots last 1800 s together: expected at most 1200, as .*a.json"):
        series_availability(["b.json", "a.json"], tmp_path, slots=3, slot_seconds=600)
    zone(tmp_path / "none.json", [0, 0])
    with pytest.raises(InvalidParameterError, match="no zone ever had a machine"):
        series_availability([str(tmp_path / "none.json")], None, slots=1, slot_seconds=300)
    mine = {
        "name": "zones",
        "cluster": {
            "core": "opm",
            "slots": 4,
            "machines": {"kind": "spot-series", "files": ["a.json"], "slot_seconds": 300},
            "jobs": {"kind": "drawn", "per_slot": 1.0, "stay": 2},
            "policies": ["opm", "fair"],
        },
    }
    assert run(Scenario.from_dict(mine), data=tmp_path).meta["complete"]
