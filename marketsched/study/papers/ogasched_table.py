"""Table 2 of the OgaSched paper (Table III of its extended version): horizon, arrivals, density."""

from __future__ import annotations

from marketsched.study.papers.claims import Claim, Row, ratio_row
from marketsched.study.papers.ogasched import BASELINES, INSTANCE, LEAD, NAME, ONLY, POLICIES, because
from marketsched.study.papers.runs import Array, Bench, Found, key_panel, leads, stacked, totals

# Average rewards of OgaSched, DRF, Fairness, BinPacking, Spreading. At density 2.5 the extended version prints
# 2857.60 for Fairness.
TABLE_2 = {
    ("T", 1000): (2578.53, 2422.47, 2532.24, 2386.01, 2382.01),
    ("T", 2000): (2886.33, 2493.02, 2582.80, 2449.15, 2466.71),
    ("T", 5000): (2911.37, 2449.23, 2552.41, 2444.32, 2436.60),
    ("T", 10000): (3104.98, 2497.85, 2436.22, 2365.13, 2362.88),
    ("rho", 0.3): (1904.87, 1364.53, 1295.53, 1246.39, 1250.67),
    ("rho", 0.5): (2154.18, 2086.59, 1997.19, 1897.79, 1888.06),
    ("rho", 0.7): (3117.29, 2503.01, 2628.02, 2518.98, 2519.37),
    ("rho", 0.9): (2938.22, 2755.41, 2873.84, 2740.19, 2737.93),
    ("density", 2): (2816.18, 2417.08, 2501.54, 2374.31, 2382.87),
    ("density", 2.5): (2904.51, 2786.94, 2875.60, 2757.71, 2766.07),
    ("density", 3): (3127.47, 2795.42, 2918.98, 2829.19, 2836.37),
}


def table_2(bench: Bench) -> Found:
    """Horizon, arrival probability and density; the last is the mean number of ports of an instance."""
    cases = [key for key in TABLE_2 if bench.full or key[0] != "T" or key[1] <= 2000]
    slots = bench.length(1000, 2000)
    keys = {"rho": "cluster.arrivals.probability", "density": f"{INSTANCE}.ports_per_instance"}
    rows: list[Row] = []
    found = []
    for key, value in cases:
        length = bench.length(int(value), int(value)) if key == "T" else slots
        each = bench.compared(NAME, [f"{keys[key]}={value}"] if key in keys else [], POLICIES, length)
        found.append(each)
        printed = TABLE_2[key, value]
        for policy, reward in zip(BASELINES, printed[1:], strict=True):
            text = f"{policy} / OgaSched, {key} = {value}"
            paper, rounding = _ratio(reward, printed[0])
            claim = Claim(text, "Table 2", "number", paper, 1.0, rounding, because(each, [policy]))
            rows.append(ratio_row(claim, totals(each, policy), totals(each, LEAD)))
        text = f"best baseline / OgaSched, {key} = {value}"
        rows.append(leads(text, "Section 4.2", each, LEAD, BASELINES, because(each)))
    rows += _along(dict(zip(cases, [totals(each, LEAD) for each in found], strict=True)))
    names = [f"{key} {value}" for key, value in cases]
    panel = key_panel("Table 2", "setting", names, found, "reward per slot")
    return Found(rows, [panel], f"{slots} slots (T: its own)", stacked("setting", names, found))


def _ratio(above: float, below: float) -> tuple[float, float]:
    """Return the ratio of two printed numbers, and how much two digits behind the point leave open."""
    return above / below, above / below * 0.005 * (1 / above + 1 / below)


def _along(own: dict[tuple[str, float], Array]) -> list[Row]:
    """Return how OgaSched's own rewards change from column to column."""
    rows = []
    for (key, value), before in own.items():
        after = next(((k, v) for k, v in own if k == key and v > value), None)
        if after is None:
            continue
        paper, rounding = _ratio(TABLE_2[after][0], TABLE_2[key, value][0])
        text = f"OgaSched, average reward, {key} = {after[1]} over {value}"
        claim = Claim(text, "Table 2", "number", paper, 1.0, rounding, ONLY)
        rows.append(ratio_row(claim, own[after], before))
    return rows
