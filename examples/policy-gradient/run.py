"""A policy gradient, and learners that see what every bid earns: shading under pay-as-bid, the truth elsewhere."""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import t

from marketsched import DeadlineValue, StatementOfWork, figure_style, get_mechanism
from marketsched.agents import Job, MarketSetup, value_menu
from marketsched.agents.learners import Draw, make_learner
from marketsched.env import OBSERVED, OwnerEnv
from marketsched.mechanisms import StatementLaw

FACTORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MECHANISMS = ("pay-as-bid", "posted-price", "bid-price")
VALUE = OBSERVED.index("highest value")
NODES, ROUNDS, BIRTHS, JOBS = 2, 9, 5, 3  # jobs born in each of the first rounds, but for one in five
VALUES, DURATIONS = (2.0, 4.0, 6.0, 8.0, 10.0), (1, 2, 3)  # equally likely; credits, rounds
OWN = 4  # the learner's job is born in this round
SEEN = 30  # markets in which three further learners see what every factor earns
BATCH, RATE, FRESH = 100, 4.0, 1_000_000  # markets a step, length of a step, first seed of the markets that judge


def statement(birth: int, value: float) -> StatementOfWork:
    """Return a job that is ready at once, for one to three rounds, and worth nothing three rounds later."""
    return StatementOfWork(birth, 1, DeadlineValue(value, birth + 3), [(birth, d, 1 / 3) for d in DURATIONS])


def law(birth: int) -> StatementLaw:
    """Return what is public of a job that appears in four of five markets."""
    return StatementLaw([(None, 0.2), *((statement(birth, value), 0.8 / len(VALUES)) for value in VALUES)])


LAWS = [law(birth) for birth in range(1, BIRTHS + 1) for _ in range(JOBS)]


class Day:
    """A short market with more work than its nodes can do, and in the middle of it the learner's job."""

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism
        self.known = {"forecast": "laws", "laws": LAWS, "scenarios": 4} if mechanism == "bid-price" else {}

    def setup(self, rng: np.random.Generator) -> MarketSetup:
        """Draw a day."""
        drawn = [case[int(rng.choice(len(case), p=[p for _, p in case]))][0] for case in (law.cases for law in LAWS)]
        others = [sow for sow in drawn if sow is not None]
        named = [(f"other-{k}", sow) for k, sow in enumerate(others)]
        named.append(("learner", statement(OWN, float(rng.choice(VALUES)))))
        named.sort(key=lambda each: each[1].birth)  # of its round the learner is the last
        durations = rng.choice(DURATIONS, len(named)).tolist()
        jobs = [Job(n, n, sow, sow.birth, d, d) for (n, sow), d in zip(named, durations, strict=True)]
        sizes = {"max_concurrency": 1, "max_duration": 3, "max_value": max(VALUES), "max_delay": 4}
        mechanism = get_mechanism(self.mechanism, capacity=NODES, horizon=ROUNDS, rng=rng, **sizes, **self.known)
        return MarketSetup(self.mechanism, jobs, mechanism, NODES, ROUNDS, sizes["max_delay"])


def features(observation: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the policy is linear in: a constant, and the value of the job."""
    return np.array([1.0, 2.0 * observation[VALUE] - 1.0])


def train(env: OwnerEnv, steps: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], list[float]]:
    """Return the weights (actions x features) after so many steps of REINFORCE, and the mean factor in each."""
    weights, means = np.zeros((len(FACTORS), 2)), []
    for step in range(steps):
        seen = [features(env.reset(seed=step * BATCH)[0])]
        chosen, rewards = [], []
        for k in range(BATCH):
            chosen.append(int(rng.choice(len(FACTORS), p=softmax(weights @ seen[k]))))
            rewards.append(env.step(chosen[k])[1])
            seen.append(features(env.reset(seed=step * BATCH + k + 1)[0]))
        phi, odds = np.array(seen[:BATCH]), softmax(np.array(seen[:BATCH]) @ weights.T, axis=1)
        surprise = np.array(rewards) - phi @ np.linalg.lstsq(phi, np.array(rewards))[0]  # beside others of this value
        weights += RATE / BATCH * ((np.eye(len(FACTORS))[chosen] - odds) * surprise[:, None]).T @ phi
        means.append(float((odds @ FACTORS).mean()))
    return weights, means


def judge(env: OwnerEnv, weights: NDArray[np.float64], markets: int) -> NDArray[np.float64]:
    """Return utilities in fresh markets, (markets, actions + 1): of each factor, and of the learnt policy."""
    found = np.empty((markets, len(FACTORS) + 1))
    for k in range(markets):
        odds = softmax(weights @ features(env.reset(seed=FRESH + k)[0]))
        for action in range(len(FACTORS)):
            env.reset(seed=FRESH + k)
            found[k, action] = env.step(action)[1]
        found[k, -1] = odds @ found[k, :-1]
    return found


def odds_after(rule: str, own: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how likely a learner takes each factor that has seen what all of them earn in these markets."""
    if rule == "follow the leader":
        earned = own.sum(axis=0).round(9)
        return np.eye(len(FACTORS))[max(range(len(FACTORS)), key=lambda k: (earned[k], k))]  # of equal ones the truest
    learner = make_learner(rule, len(FACTORS), low=-max(VALUES), high=max(VALUES), horizon=len(own))
    for row in own:
        learner.learn(Draw(0, 1.0), row)
    return learner.probabilities


def seen_in_full(rule: str, found: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return how likely learners take the truth after `SEEN` markets of their own, and what each gains elsewhere."""
    truths, gains = [], []
    for own in np.arange(len(found)).reshape(-1, SEEN):
        odds, others = odds_after(rule, found[own]), np.delete(found, own, axis=0)
        truths.append(odds[-1])
        gains.append((others @ odds - others[:, -1]).mean())
    return float(np.mean(truths)), np.array(gains)


def interval(differences: NDArray[np.float64]) -> str:
    """Return mean and half width of Student's 95 % interval."""
    half = t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.3f} +- {half:.3f}"


def main() -> None:
    """Train, judge, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, help="steps of the gradient, of 100 markets each (60)")
    parser.add_argument("--markets", type=int, default=300, help="fresh markets that judge, a multiple of 30 (300)")
    parser.add_argument("--out", type=Path, default=Path("build/examples/policy-gradient.png"))
    chosen = parser.parse_args()
    plt.rcParams.update(figure_style())
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for mechanism in MECHANISMS:
        env = OwnerEnv(Day(mechanism), owner="learner", menu=value_menu(FACTORS))
        weights, means = train(env, chosen.steps, np.random.default_rng(1))
        found = judge(env, weights, chosen.markets)
        earned = found[:, :-1].mean(axis=0)
        best = max(range(len(FACTORS)), key=lambda k: (earned[k], k))  # of equal ones the truest
        print(f"{mechanism}: the best fixed factor is {FACTORS[best]:.1f}; the policy has learnt {means[-1]:.2f}")
        print(f"  best factor less truth, credits a market: {interval(found[:, best] - found[:, -2])}")
        print(f"  policy less best factor: {interval(found[:, -1] - found[:, best])}")
        print(f"  policy less truth: {interval(found[:, -1] - found[:, -2])}")
        for rule in ("follow the leader", "adahedge", "hedge"):
            truth, gains = seen_in_full(rule, found[:, :-1])
            print(f"  {rule}, every factor seen in {SEEN} markets, less truth: {interval(gains)}; truthful {truth:.2f}")
        left.plot(np.arange(1, len(means) + 1) * BATCH, means, label=mechanism)
        right.plot(FACTORS, earned, marker="o", label=mechanism)
    left.set(xlabel="markets played", ylabel="reported value / value, mean", ylim=(0, 1.05))
    right.set(xlabel="reported value / value, always", ylabel="utility, credits a market", ylim=(0, None))
    left.legend()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(chosen.out, dpi=100)


if __name__ == "__main__":
    main()
