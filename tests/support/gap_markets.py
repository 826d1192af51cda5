"""The market of gap G1: durations hidden, and over-declaring pays."""

from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)


def g1_market():
    market = PostedPriceMechanism(
        2,
        6,
        PostedPricing(prices=[1.0, 4.0, 100.0]),
        ExactOracle(),
        max_concurrency=2,
        max_duration=2,
        max_value=10.0,
        max_delay=6,
        epsilon=-0.5,
    )
    market.submit("earlier", StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(2, 1, 1.0)]))
    return market


def g1_report(concurrency, signals=(None, None)):
    rows = [(1, 1, 0.5, signals[0]), (1, 2, 0.5, signals[1])]
    return StatementOfWork(1, concurrency, TableValue({2: 10.0}), rows)
