"""Print a digest of every column of every built-in scenario's tables, seed by seed, to hold two versions together.

    python tests/support/same_runs.py [--seeds 0,1,2,3,4] [--data DIR] [SCENARIO ...] > now.txt
    comm -23 <(sort before.txt) <(sort now.txt)

prints what the earlier version found and this one does not: nothing, if both decide alike. New columns do not count,
and times are left out. `make links` makes the tree that a version's ``PYTHONPATH`` names.
"""

import argparse
import hashlib
from collections.abc import Iterator

import marketsched
from marketsched.config.scenario_file import scenario_names
from marketsched.mechanisms.errors import MarketschedError


def found(scenario: str, seed: int, data: str | None) -> Iterator[tuple[str, str]]:
    """Yield what one run has found: each figure of the summary, each column of a table; or the name of its error."""
    try:
        result = marketsched.run(scenario, seed, data=data)
    except MarketschedError as error:
        yield "error", type(error).__name__
        return
    tables = dict(result.tables)
    if result.compares:
        tables["summary"] = result.summary
    yield from ((f"summary.{name}", repr(value)) for name, value in result.outcome.items())
    for name, table in tables.items():
        yield from ((f"{name}.{column}", repr(table[column].tolist())) for column in table.columns)


def main() -> None:
    """Print one line for each figure and column."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--data")
    asked = parser.parse_args()
    for seed in map(int, asked.seeds.split(",")):
        for scenario in asked.scenarios or scenario_names():
            for what, text in found(scenario, seed, asked.data):
                if "seconds" not in what:
                    print(scenario, seed, what, hashlib.sha256(text.encode()).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()
