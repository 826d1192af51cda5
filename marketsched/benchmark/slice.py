"""Entries of the benchmark in the tables of `marketsched.mechanisms.registry`: names only, nothing is loaded."""

ENTRIES = {
    "command": {"benchmark": "marketsched.benchmark.command:benchmark"},
    "result": {"benchmark": "marketsched.benchmark.benchmark_kind:BenchmarkKind"},
}
