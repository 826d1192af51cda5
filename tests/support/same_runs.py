"""Print a digest of all tables of every built-in scenario, seed by seed: two versions that decide alike print alike.

    python tests/support/same_runs.py --seeds 5 [--data DIR] [SCENARIO ...]

Times are left out. Run it with the ``PYTHONPATH`` of either version (`make links` makes such a tree) and compare.
"""

import argparse
import hashlib

import marketsched
from marketsched.config.scenario_file import built_in_names


def digest(scenario: str, seed: int, data: str | None) -> str:
    """Return a digest of the tables and the summary of one run, or the name of its error."""
    try:
        result = marketsched.run(scenario, seed, data=data)
    except marketsched.mechanisms.MarketschedError as error:
        return type(error).__name__
    whole = hashlib.sha256()
    tables = dict(result.tables)
    if hasattr(result.summary, "to_csv"):
        tables["summary"] = result.summary
    else:
        whole.update(repr(result.summary).encode())
    for name in sorted(tables):
        frame = tables[name]
        timed = [column for column in frame.columns if "seconds" in str(column)]
        whole.update(name.encode() + frame.drop(columns=timed).to_csv().encode())
    return whole.hexdigest()[:20]


def main() -> None:
    """Print one line for each scenario and seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data")
    asked = parser.parse_args()
    for scenario in asked.scenarios or built_in_names():
        for seed in range(asked.seeds):
            print(scenario, seed, digest(scenario, seed, asked.data), flush=True)


if __name__ == "__main__":
    main()
