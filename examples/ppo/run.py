"""PPO of Stable-Baselines3 in two markets: what it earns beside the truth, and why it need not report the truth."""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import stable_baselines3 as sb3
from numpy.typing import NDArray
from scipy.stats import t
from stable_baselines3.common.callbacks import BaseCallback

from marketsched import contested_market, figure_style
from marketsched.env import OwnerEnv

MECHANISMS = ("pay-as-bid", "posted-price")
OWNER = "owner-1"  # learns; the other seven report truly
FRESH = 1_000_000  # first seed of the markets that judge, which no learner plays
SAME = 1e-9  # credits: reports that differ by less earn the same


class Judged(BaseCallback):
    """Notes, at every update, what the policy would do in markets that are played beforehand with every report."""

    def __init__(self, observed: NDArray[np.float32], utilities: NDArray[np.float64]) -> None:
        super().__init__()
        self.observed, self.utilities = observed, utilities
        self.seen: list[tuple[int, NDArray[np.float64]]] = []  # markets played, and the odds of each report

    def judge(self) -> None:
        """Note the probability of each report in each market, shape (markets, reports)."""
        observations, _ = self.model.policy.obs_to_tensor(self.observed)
        odds = self.model.policy.get_distribution(observations).distribution.probs
        self.seen.append((self.num_timesteps, odds.detach().cpu().numpy().astype(float)))

    def _on_rollout_start(self) -> None:
        self.judge()

    def _on_training_end(self) -> None:
        self.judge()

    def _on_step(self) -> bool:
        return True


def played(env: OwnerEnv, markets: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return what the owner observes in fresh markets, and its utility under every report, (markets, reports)."""
    observed, utilities = [], np.empty((markets, len(env.menu.names)))
    for k in range(markets):
        for action in range(utilities.shape[1]):
            observation, _ = env.reset(seed=FRESH + k)
            utilities[k, action] = env.step(action)[1]
        observed.append(observation)
    return np.array(observed), utilities


def shares(odds: NDArray[np.float64], utilities: NDArray[np.float64], truth: int) -> tuple[float, float, float]:
    """Return how likely a policy reports the truth, a lie that earns the same, and one that earns another amount."""
    same = np.abs(utilities - utilities[:, [truth]]) < SAME
    alike = (odds * same).sum(axis=1).mean() - odds[:, truth].mean()
    return float(odds[:, truth].mean()), float(alike), float((odds * ~same).sum(axis=1).mean())


def interval(x: NDArray[np.float64]) -> str:
    """Return mean and half width of Student's 95 % interval."""
    return f"{x.mean():+.3f} +- {t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x)):.3f}"


def main() -> None:
    """Train, judge, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=4096, help="markets that a learner plays (4,096)")
    parser.add_argument("--learners", type=int, default=3, help="learners of each market, by seed (3)")
    parser.add_argument("--markets", type=int, default=200, help="fresh markets that judge (200)")
    parser.add_argument("--out", type=Path, default=Path("build/examples/ppo.png"))
    chosen = parser.parse_args()
    plt.rcParams.update(figure_style())
    fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for mechanism, panel in zip(MECHANISMS, axes[1:], strict=True):
        env = OwnerEnv(contested_market(mechanism), owner=OWNER)
        observed, utilities = played(env, chosen.markets)
        truth = env.menu.truth
        earned = utilities.mean(axis=0).round(9)
        best = max(range(len(earned)), key=lambda k: (earned[k], k))  # of equal ones the truest
        print(f"{mechanism}: the best report in all markets is {env.menu.names[best]!r}")
        print(f"  it less truth, credits a market: {interval(utilities[:, best] - utilities[:, truth])}")
        curves, gains = [], []
        for seed in range(1, chosen.learners + 1):
            model = sb3.PPO("MlpPolicy", env, n_steps=512, gamma=1.0, seed=seed, device="cpu")
            judged = Judged(observed, utilities)
            model.learn(chosen.episodes, callback=judged)
            mine = ((odds * utilities).sum(axis=1).mean() for _, odds in judged.seen)
            reports = ((n, *shares(odds, utilities, truth)) for n, odds in judged.seen)
            curves.append([(*each, credits) for each, credits in zip(reports, mine, strict=True)])
            gains.append((judged.seen[-1][1] * utilities).sum(axis=1) - utilities[:, truth])
        mean = np.mean(curves, axis=0)
        print(f"  PPO after {chosen.episodes:,} markets less truth: {interval(np.mean(gains, axis=0))}")
        print(
            "  it reports the truth {:.0%}, a lie that earns the same {:.0%}, another lie {:.0%}".format(*mean[-1, 1:4])
        )
        axes[0].plot(mean[:, 0], utilities[:, truth].mean() - mean[:, 4], label=mechanism)
        panel.stackplot(mean[:, 0], mean[:, 1:4].T, labels=("truth", "a lie that earns the same", "another lie"))
        panel.set(title=mechanism, ylim=(0, 1), xlim=(0, mean[-1, 0]))
        panel.set(xlabel="markets played", ylabel="share of reports")
    axes[0].axhline(0.0, lw=0.8, color="black")
    axes[0].set(xlabel="markets played", ylabel="regret against truth, credits a market")
    axes[0].legend()
    axes[2].legend(loc="upper left", fontsize="small")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(chosen.out, dpi=100)


if __name__ == "__main__":
    main()
