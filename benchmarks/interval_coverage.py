"""How often intervals hold the true figure: every interval of `compare` and `audit`, in six regimes, by simulation.

    python benchmarks/interval_coverage.py [BLOCKS]

prints the table of docs/intervals.md. A block is n runs; each run has a loss, a share of its optimum. An interval of
95 % should hold the true figure in .95 of the blocks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from marketsched.results.paired_statistics import ratio_of_means, spread
from marketsched.truthfulness.certificates.population import certify_population
from marketsched.truthfulness.searches.betting import lower_end, mean_interval

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

SIZES, LEAST, CONFIDENCE = (5, 10, 20), 0.93, 0.95
TOLERATED = 0.1  # a loss up to it is none, for shares of owners
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
    """Print the table; coverage below .93 is bold."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"| losses | n | {' | '.join(INTERVALS)} |\n|---|---|{'---|' * len(INTERVALS)}")
    for name, draw in REGIMES.items():
        for n in SIZES:
            shares = [f"{x:.2f}" if x >= LEAST else f"**{x:.2f}**" for x in covered(draw, n, blocks)]
            print(f"| {name} | {n} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
