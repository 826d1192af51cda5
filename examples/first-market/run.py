"""Three equal jobs on a small machine: the menus they see and the plans they get."""

from marketsched.mechanisms import (
    DeadlineValue,
    ExponentialPricing,
    MonteCarloOracle,
    PostedPriceMechanism,
    StatementOfWork,
)


def main() -> None:
    """Submit the three jobs and print what each was offered."""
    market = PostedPriceMechanism(
        5,
        10,
        ExponentialPricing(),
        MonteCarloOracle(1000, rng=0),
        max_concurrency=1,
        max_duration=2,
        max_value=4.0,
        max_delay=6,
    )
    for owner in ("ann", "bob", "cat"):
        menu = market.menu(concurrency=1)
        one_round = [f"{menu.price(start, 1):.3f}" for start in range(1, 5)]
        plan = market.submit(owner, StatementOfWork(1, 1, DeadlineValue(2.0, 5), [(1, 1, 0.5), (2, 2, 0.5)]))
        starts = {arrival: start for arrival, _, start in plan.starts}
        print(f"{owner}: one round costs {' '.join(one_round)} in rounds 1-4; starts by arrival {starts}")


if __name__ == "__main__":
    main()
