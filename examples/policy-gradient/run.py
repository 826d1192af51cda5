"""A policy gradient in NumPy learns what to bid: under pay-as-bid to shade, at posted and at bid prices the truth."""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from marketsched import DeadlineValue, StatementOfWork, get_mechanism
from marketsched.agents import Job, MarketSetup, value_menu
from marketsched.env import OBSERVED, OwnerEnv

FACTORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MECHANISMS = ("pay-as-bid", "posted-price", "bid-price")
VALUE = OBSERVED.index("highest value")
ROUNDS, NODES, TOP = 16, 3, 10.0  # of a market; credits, the highest value
BATCH, RATE, FRESH = 100, 0.05, 1_000_000  # episodes a step, length of a step, first seed of the episodes that judge


class Day:
    """A short market: 2.5 jobs a round on average for three nodes, and in the middle of it the learner's job."""

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism

    def setup(self, rng: np.random.Generator) -> MarketSetup:
        """Draw a day."""
        own = int(rng.integers(7, 11))
        births = [*np.repeat(np.arange(1, ROUNDS - 4), rng.poisson(2.5, ROUNDS - 5)).tolist(), own]
        jobs = []
        for k, birth in enumerate(births):
            name = "learner" if k == len(births) - 1 else f"other-{k}"
            duration, value = int(rng.integers(1, 4)), float(rng.uniform(1.0, TOP))
            law = [(birth, d, 1 / 3) for d in (1, 2, 3)]
            truth = StatementOfWork(birth, 1, DeadlineValue(value, birth + 3), law)
            jobs.append(Job(name, name, truth, birth, duration, duration))
        jobs.sort(key=lambda job: job.truth.birth)
        limits = {"max_concurrency": 1, "max_duration": 3, "max_value": TOP, "max_delay": 4}
        mechanism = get_mechanism(self.mechanism, capacity=NODES, horizon=ROUNDS, rng=rng, **limits)
        return MarketSetup(self.mechanism, jobs, mechanism, NODES, ROUNDS, limits["max_delay"])


def features(observation: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the policy is linear in: a constant and the value of the job."""
    return np.array([1.0, 2.0 * observation[VALUE] - 1.0])


def train(env: OwnerEnv, steps: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], list[float]]:
    """Return weights (actions x features) after so many steps of REINFORCE, and the mean factor after each."""
    weights, path = np.zeros((len(FACTORS), 2)), []
    seed = 0
    for _ in range(steps):
        seen, chosen, rewards = [], [], []
        for _ in range(BATCH):
            phi = features(env.reset(seed=seed)[0])
            action = int(rng.choice(len(FACTORS), p=softmax(weights @ phi)))
            seen.append(phi)
            chosen.append(action)
            rewards.append(env.step(action)[1])
            seed += 1
        gain = (np.array(rewards) - np.mean(rewards)) / (np.std(rewards) + 1e-9)
        gradient = np.zeros_like(weights)
        for phi, action, advantage in zip(seen, chosen, gain, strict=True):
            gradient += advantage * np.outer(np.eye(len(FACTORS))[action] - softmax(weights @ phi), phi)
        weights += RATE * gradient / np.sqrt(BATCH)
        path.append(float(np.mean([softmax(weights @ phi) @ FACTORS for phi in seen])))
    return weights, path


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities."""
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())


def judge(env: OwnerEnv, weights: NDArray[np.float64], episodes: int) -> NDArray[np.float64]:
    """Return utilities on fresh markets, (episodes, actions + 1): of each factor, and of the learner's favourite."""
    found = np.empty((episodes, len(FACTORS) + 1))
    for k in range(episodes):
        best = int(np.argmax(weights @ features(env.reset(seed=FRESH + k)[0])))
        for action in range(len(FACTORS)):
            env.reset(seed=FRESH + k)
            found[k, action] = env.step(action)[1]
        found[k, -1] = found[k, best]
    return found


def interval(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and half width of Student's 95 % interval."""
    half = stats.t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean()), float(half)


def main() -> None:
    """Train, judge, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120, help="steps of the gradient, of 100 markets each (120)")
    parser.add_argument("--episodes", type=int, default=500, help="fresh markets that judge (500)")
    parser.add_argument("--out", type=Path, default=Path("build/examples/policy-gradient.png"))
    chosen = parser.parse_args()
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for mechanism in MECHANISMS:
        env = OwnerEnv(Day(mechanism), owner="learner", menu=value_menu(FACTORS))
        weights, path = train(env, chosen.steps, np.random.default_rng(1))
        found = judge(env, weights, chosen.episodes)
        means = found[:, :-1].mean(axis=0)
        best = int(means.argmax())
        lying, wide = interval(found[:, best] - found[:, -2])
        learnt, half = interval(found[:, -1] - found[:, best])
        print(f"{mechanism}: the best factor is {FACTORS[best]:.1f}; it gains {lying:.3f} +- {wide:.3f} over the truth")
        print(
            f"  learnt: {path[-1]:.2f} on average; {learnt:+.3f} +- {half:.3f} credits a market beside the best factor"
        )
        axes[0].plot(np.arange(1, len(path) + 1) * BATCH, path, label=mechanism)
        axes[1].plot(FACTORS, means, marker="o", label=mechanism)
    axes[0].set(xlabel="markets played", ylabel="reported value / value, mean", ylim=(0, 1.05))
    axes[1].set(xlabel="reported value / value, always", ylabel="utility, credits a market", ylim=(0, None))
    axes[0].legend()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(chosen.out, dpi=100)


if __name__ == "__main__":
    main()
