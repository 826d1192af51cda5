"""How often intervals hold the true figure: every interval of `compare` and `audit`, in six regimes, by simulation.

    python benchmarks/interval_coverage.py [BLOCKS]

prints the tables of docs/intervals.md. A block is n runs; each run has a loss, a share of its optimum. An interval of
95 % should hold the true figure in .95 of the blocks. In the first table optima lie between 9 and 11, in the second
they are lognormal, and what is lost comes with small ones and large ones alike, or with the largest tenth alone. The
third has how often one of several mechanisms that are alike in law is shown behind the best of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from marketsched.results.paired_statistics import ratio_of_means, share_of_means, spread
from marketsched.truthfulness.certificates.bands import certify_population
from marketsched.truthfulness.searches.betting import lower_end, mean_interval

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

SIZES, LEAST, CONFIDENCE = (5, 10, 20), 0.93, 0.95
TOLERATED = 0.1  # a loss up to it is none, for shares of owners
LARGEST_TENTH = 1.2815515655446004  # quantile .9 of a normal
GAIN = 0.3  # of a lie, less a loss


def _lognormal(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return np.minimum(1.0, 0.05 * np.exp(rng.normal(size=n)))


def _pareto(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return np.minimum(1.0, 0.04 + 0.04 * rng.pareto(2.1, n))


REGIMES: dict[str, Draw] = {  # losses as shares of what was to be had
    "normal": lambda rng, n: np.clip(rng.normal(0.2, 0.04, n), 0.0, 1.0),
    "lognormal": _lognormal,
    "Pareto, 2.1": _pareto,
    "rare large losses": lambda rng, n: np.where(rng.random(n) < 0.05, 0.8, 0.0),
    "small ones, rarely large": lambda rng, n: np.where(rng.random(n) < 0.05, 0.81, 0.01),
    "ties": lambda rng, n: np.where(rng.random(n) < 0.5, 0.1, 0.0),
}


def _mean(losses: NDArray[np.float64], rng: np.random.Generator, mean: float, within: float) -> bool:
    found = spread(losses, CONFIDENCE)
    return found.low - 1e-12 <= mean <= found.high + 1e-12


def _ratio(losses: NDArray[np.float64], rng: np.random.Generator, mean: float, within: float) -> bool:
    best = rng.uniform(9.0, 11.0, losses.size)
    found = ratio_of_means(best * (1.0 - losses), best, confidence=CONFIDENCE)
    return found.low - 1e-12 <= 1.0 - mean <= found.high + 1e-12


def _ratio_to_optimum(losses: NDArray[np.float64], rng: np.random.Generator, mean: float, within: float) -> bool:
    best = rng.uniform(9.0, 11.0, losses.size)
    found = ratio_of_means(best, best * (1.0 - losses), confidence=CONFIDENCE, least=1.0)
    return found.low - 1e-12 <= 1.0 / (1.0 - mean) <= found.high + 1e-12


def _bounded_mean(losses: NDArray[np.float64], rng: np.random.Generator, mean: float, within: float) -> bool:
    low, high = mean_interval(losses, 0.0, 1.0, CONFIDENCE)
    return low <= mean <= high


def _lower_end(losses: NDArray[np.float64], rng: np.random.Generator, mean: float, within: float) -> bool:
    """The end that confirms a lie: bets that learn from the gains so far, for the question whether any is left."""
    return lower_end(GAIN - losses, GAIN - 1.0, 1 - CONFIDENCE) <= GAIN - mean


def _share(losses: NDArray[np.float64], rng: np.random.Generator, mean: float, within: float) -> bool:
    return certify_population(losses.tolist(), TOLERATED, CONFIDENCE) <= within


def _sized(sigma: float, with_size: bool, n: int, blocks: int) -> list[float]:
    """Return the coverage of the three intervals that weigh runs, where optima are lognormal."""
    rng = np.random.default_rng([23, n, int(10 * sigma), with_size])

    def draw(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        best = np.exp(sigma * rng.normal(size=count))
        lost = best > np.exp(sigma * LARGEST_TENTH) if with_size else rng.random(count) < 0.1
        return best, best * np.where(lost, 0.2, 1.0)

    best, earned = draw(4_000_000)
    share = float(earned.sum() / best.sum())
    hits = np.zeros(3)
    for _ in range(blocks):
        best, earned = draw(n)
        points = share_of_means(earned, best, CONFIDENCE)
        two = ratio_of_means(earned, best, confidence=CONFIDENCE)
        optimum = ratio_of_means(best, earned, confidence=CONFIDENCE, least=1.0)
        pairs = ((points, share), (two, share), (optimum, 1.0 / share))
        hits += [found.low - 1e-12 <= true <= found.high + 1e-12 for found, true in pairs]
    return [float(x) for x in hits / blocks]


def _behind(mechanisms: int, n: int, blocks: int) -> float:
    """Return how often one of several mechanisms, alike in law, is shown behind the best of them."""
    rng = np.random.default_rng([29, n, mechanisms])
    shown = 0
    for _ in range(blocks):
        welfare = rng.normal(10.0, 1.0, n) + rng.normal(0.0, 0.5, (mechanisms, n))
        winner = welfare[welfare.mean(axis=1).argmax()]
        highs = [ratio_of_means(each, winner, confidence=CONFIDENCE).high for each in welfare if each is not winner]
        shown += any(high < 1.0 for high in highs)
    return shown / blocks


INTERVALS = {
    "mean or difference (Student)": _mean,
    "ratio of two mechanisms": _ratio,
    "ratio to the optimum": _ratio_to_optimum,
    "gain of a lie (betting)": _bounded_mean,
    "lower end of a lie's gain": _lower_end,
    "share of owners": _share,
}


def covered(draw: Draw, n: int, blocks: int) -> list[float]:
    """Return for each interval in how many of the blocks, as a share, it holds what is true."""
    many = draw(np.random.default_rng(9), 4_000_000)
    mean, within = float(many.mean()), float((many <= TOLERATED).mean())
    hits = np.zeros(len(INTERVALS))
    rng = np.random.default_rng([17, n])
    for _ in range(blocks):
        losses = draw(rng, n)
        hits += [holds(losses, rng, mean, within) for holds in INTERVALS.values()]
    return [float(share) for share in hits / blocks]


def main() -> None:
    """Print the tables; coverage below .93 is bold."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"| losses | n | {' | '.join(INTERVALS)} |\n|---|---|{'---|' * len(INTERVALS)}")
    for name, draw in REGIMES.items():
        for n in SIZES:
            print(f"| {name} | {n} | {' | '.join(map(_shown, covered(draw, n, blocks)))} |", flush=True)
    print("\n| optima, and losses of .8 | n | share, points | ratio of two mechanisms | ratio to the optimum |")
    print("|---|---|---|---|---|")
    for sigma in (0.5, 1.5):
        for with_size in (False, True):
            name = f"lognormal, sigma {sigma:g}, {'the largest tenth' if with_size else 'one run in ten'}"
            for n in SIZES:
                print(f"| {name} | {n} | {' | '.join(map(_shown, _sized(sigma, with_size, n, blocks)))} |", flush=True)
    print("\n| mechanisms alike in law | n | one is shown behind the best |\n|---|---|---|")
    for mechanisms in (2, 4, 8):
        for n in SIZES:
            print(f"| {mechanisms} | {n} | {_behind(mechanisms, n, blocks):.2f} |", flush=True)


def _shown(coverage: float) -> str:
    return f"{coverage:.2f}" if coverage >= LEAST else f"**{coverage:.2f}**"


if __name__ == "__main__":
    main()
