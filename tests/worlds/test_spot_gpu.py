"""Alibaba's cluster with spot GPUs and SkyPilot's series, on small samples made in their formats."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from marketsched.config.scenario import Scenario
from marketsched.cores.worlds.records import series_availability
from marketsched.mechanisms import ExactOracle, PostedPriceMechanism, PostedPricing
from marketsched.mechanisms.errors import InvalidParameterError, TraceError
from marketsched.play.running import run
from marketsched.show.cli import app
from marketsched.worlds.logs.formats import format_of
from marketsched.worlds.logs.trace_logs import spot_gpu_log
from marketsched.worlds.traces import get_trace, verify
from marketsched.worlds.traces.spot_series import read_spot_series, spot_prices, spot_statistics

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


def test_columns_are_read_in_any_order_and_compared_with_the_published_figures(folder):
    """The file of nodes names its columns in another order than its description does."""
    nodes = get_trace("spot-gpu-nodes").read(folder)
    assert nodes.to_dict("list") == {
        "node_name": [0, 1],
        "gpu_model": ["GPU-series-1", "A10"],
        "gpu_capacity_num": [4, 1],
        "cpu_num": [192, 128],
    }
    found = verify("spot-gpu-nodes", folder).set_index("quantity")["found"]
    assert (found["rows"], found["GPUs"], found["vCPUs"]) == (2, 5, 320)
    jobs = verify("spot-gpu-jobs", folder).set_index("quantity")["found"]
    assert (jobs["rows"], jobs["job_type = HP"], jobs["gpu_request = 0.3"]) == (5, 2, 1)
    for name in ("spot-gpu-nodes", "spot-gpu-jobs"):  # whatever a file is counted by, the published counts are its rows
        printed = verify(name, folder).set_index("quantity")["expected"].astype(float)
        columns = printed[printed.index.str.contains(" = ")].groupby(lambda quantity: quantity.split(" = ")[0]).sum()
        assert len(columns) == 2 and (columns == printed["rows"]).all()
    printed = verify("spot-gpu-nodes", folder).set_index("quantity")["expected"].astype(int)
    assert sum(gpus * printed[f"gpu_capacity_num = {gpus}"] for gpus in (1, 4, 8)) == printed["GPUs"] == 10_412
    table = pd.read_csv(folder / "job_info_df.csv")
    table[table.columns[::-1]].to_csv(folder / "job_info_df.csv", index=False)
    assert spot_gpu_log(folder / "job_info_df.csv").table["processors"].tolist() == [1, 4, 128, 4]
    (folder / "node_info_df.csv").write_text(NODES.replace("cpu_num", "cpus"))
    with pytest.raises(TraceError, match=r"node_info_df.csv:1: header .*: expected 'node_name,gpu_model"):
        get_trace("spot-gpu-nodes").read(folder)
    (folder / "node_info_df.csv").write_text(NODES.replace(",4,192", ",-4,192"))
    with pytest.raises(TraceError, match=r"node_info_df.csv:2: gpu_capacity_num = '-4': expected a whole number in"):
        get_trace("spot-gpu-nodes").read(folder)


def test_a_series_says_how_long_machines_were_there(tmp_path):
    """Against a count entry by entry."""
    rng = np.random.default_rng(3)
    data = rng.integers(0, 4, 200).tolist()
    prices = rng.uniform(1, 2, 200).round(4).tolist()
    series = read_spot_series(zone(tmp_path / "zone.json", data, prices=prices))
    found = spot_statistics(series)
    ups = [len(each) for each in "".join("x" if n else " " for n in data).split()]
    downs = [len(each) for each in "".join(" " if n else "x" for n in data).split()]
    assert found["mean_up_h"] == pytest.approx(np.mean(ups) / 12) and found["days"] == pytest.approx(200 / 288)
    assert found["mean_down_h"] == pytest.approx(np.mean(downs) / 12)
    assert found["losses"] == sum(b < a for a, b in pairwise(data))
    assert (found["most"], found["share_any"]) == (3, sum(n > 0 for n in data) / 200)
    hours = spot_prices(series, 3600)
    assert hours == pytest.approx(
        [np.mean(prices[i : i + 12]) for i in range(0, 180, 12)] + [np.mean(prices[192 - 12 :])]
    )
    assert spot_prices(series, 60)[:11] == pytest.approx([prices[0] / 60] * 5 + [prices[1] / 60] * 5 + [prices[2] / 60])
    sizes = {"max_concurrency": 1, "max_duration": 1, "max_value": 9.0, "max_delay": 3}
    market = PostedPriceMechanism(1, 6, PostedPricing(hours), ExactOracle(), epsilon=-0.5, **sizes)
    assert market.slot_prices(1, 6) == pytest.approx(hours[:6])
    with pytest.raises(InvalidParameterError, match="this series has no prices: expected a file with prices"):
        spot_prices(read_spot_series(zone(tmp_path / "bare.json", data)), 300)


def test_a_series_like_the_published_one_has_its_statistics(tmp_path):
    """A machine that was there in 14,591 of 19,961 entries, 58 times, and lost 57 times."""
    up, down = (np.diff(np.linspace(0, n, 59).astype(int)) for n in (14_591, 19_961 - 14_591))
    data = [x for more, less in zip(up, down, strict=True) for x in [0] * int(less) + [1] * int(more)]
    path = zone(tmp_path / "us-west-2c_v100_1.json", data, gap=32, prices=[0.918] * 19_961)
    found = verify("spot-series", path)
    assert found["ok"].all() and len(found) == 13, found[~found["ok"]].to_string()


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


def test_the_command_describes_a_series_and_prints_its_prices(tmp_path):
    path = zone(tmp_path / "zone.json", [1, 0, 1], gap=1800, prices=[0.9, 1.2, 1.2])
    said = CliRunner().invoke(app, ["traces", "series", str(path)])
    assert said.exit_code == 0 and "share_any 0.66667" in said.output and "price_mean 1.1" in said.output
    priced = CliRunner().invoke(app, ["traces", "series", str(path), "--prices", "1800"])
    assert priced.output.startswith(
        "mechanism: {name: posted-price, pricing: {kind: posted, prices: [0.45, 0.6, 0.6]}}"
    )
    broken = CliRunner().invoke(app, ["traces", "series", str(zone(path, []))])
    assert broken.exit_code == 2 and broken.output.count("\n") == 1
