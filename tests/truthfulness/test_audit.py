"""The incentive suite: audits over the registry."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms import InvalidParameterError, register
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.show.cli import app
from marketsched.truthfulness import replay_gain
from marketsched.truthfulness.audit import audit


def rivals(n=3):
    """Return jobs of one round each that compete for one node; worth different amounts."""
    return [
        {
            "name": f"job {i}",
            "owner": f"owner {i}",
            "birth": 1,
            "concurrency": 1,
            "value": {"kind": "deadline", "value": 8 - 2 * i, "deadline": 3},
            "requirements": [{"arrival": 1, "duration": 1, "probability": 1}],
        }
        for i in range(n)
    ]


MARKET = {
    "name": "three for one",
    "workload": {
        "kind": "jobs",
        "capacity": 1,
        "horizon": 6,
        "max_concurrency": 1,
        "max_duration": 2,
        "max_value": 8,
        "max_delay": 6,
        "jobs": rivals(),
    },
    "mechanism": {"pricing": {"kind": "posted", "prices": [0.5]}},
}


@pytest.mark.slow
def test_truthful_mechanisms_are_certified_and_pay_as_bid_is_accused():
    found = audit(MARKET, ["posted-price", "exponential", "pay-as-bid"], owners=3, plays=2000)
    table = found.summary.set_index("mechanism")
    assert table.loc[["posted-price"], "regret_upper"].max() <= 1e-9
    assert table.loc[["posted-price"], "regret_lower"].tolist() == [0.0]
    assert table.loc["posted-price", "certified_share"] == 1.0  # all three owners are certified: none was drawn
    assert np.isnan(table.loc["exponential", "regret_lower"])  # its prices need more than one node: it is not built
    assert "expected C' > max_concurrency" in table.loc["exponential", "errors"]
    assert table["audited"].to_dict() == {"posted-price": True, "exponential": False, "pay-as-bid": True}
    assert table.loc["pay-as-bid", "regret_lower"] == pytest.approx(4.0)  # worth 8, and 4 is the lowest bid that wins
    assert table.loc["pay-as-bid", ["worst_job", "lie"]].tolist() == ["job 0", "reports 0.5 of its value"]
    assert np.isnan(table.loc["pay-as-bid", "regret_upper"])
    assert "posts no menu at birth" in table.loc["pay-as-bid", "errors"]
    assert found.profitable
    assert "reports 0.5 of its value" in found.result().tables["tried"]["lie"].tolist()
    (figure_axes, *_) = found.result().plot().axes
    assert figure_axes.get_title(loc="left") == "posted-price"
    json.dumps(found.result().to_dict(), allow_nan=False)


def test_a_class_of_ones_own_is_named_with_its_file():
    said = r"'QueueToll': expected one of .*; a class in a file is mine\.py:QueueToll"
    with pytest.raises(InvalidParameterError, match=said):
        audit(MARKET, ["QueueToll"])


def test_one_that_raises_is_named_and_the_audit_goes_on():
    class Raises(FirstCome):
        def advance(self):
            raise ZeroDivisionError("no luck")

    @register("raises-in-tests")
    def raises(*, capacity, horizon, max_concurrency, max_duration, max_value, max_delay, **others):
        limits = {"max_concurrency": max_concurrency, "max_duration": max_duration}
        return Raises(capacity, horizon, **limits, max_value=max_value, max_delay=max_delay)

    found = audit(MARKET, ["raises-in-tests", "posted-price"], owners=2, plays=300, budget=60.0)
    errors = found.summary.set_index("mechanism")["errors"]
    assert "no luck" in errors["raises-in-tests"]
    assert errors["posted-price"] == ""
    with pytest.raises(
        InvalidParameterError, match=r"mechanism.name = 'no such mechanism': expected one of .*armada, bid-price, "
    ):
        audit(MARKET, ["no such mechanism"])


@pytest.mark.slow
def test_an_interrupted_audit_keeps_what_is_finished(tmp_path):
    def stop(what, share):
        if what == "pay-as-bid: lies in the market at hand" and share > 1 / 3:
            raise KeyboardInterrupt

    mechanisms = ["posted-price", "pay-as-bid", "spot"]
    with pytest.raises(KeyboardInterrupt):
        audit(MARKET, mechanisms, owners=3, budget=None, plays=400, progress=stop)
    found = audit(MARKET, mechanisms, owners=3, budget=None, plays=400, progress=stop, keep_interrupted=True)
    assert not found.complete
    table = found.summary.set_index("mechanism")
    assert table.index.tolist() == ["posted-price", "pay-as-bid"]
    assert table.loc["posted-price", "errors"] == ""
    assert "interrupted" in table.loc["pay-as-bid", "errors"]
    found.result().save(tmp_path / "part")
    assert (tmp_path / "part" / "INCOMPLETE").exists()


@pytest.mark.slow
def test_the_command_says_3_if_a_lie_pays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "market.yaml").write_text(dump_yaml(MARKET))
    call = ["audit", "market.yaml", "--owners", "3", "--budget", "60"]
    clean = CliRunner().invoke(app, [*call, "--out", "clean"])
    assert clean.exit_code == 0, clean.stdout + clean.stderr
    accused = CliRunner().invoke(app, [*call, "--mechanism", "pay-as-bid", "--out", "accused"])
    assert accused.exit_code == 3, accused.stdout + accused.stderr
    assert "a lie pays" in accused.stdout
    lies = sorted((tmp_path / "accused").glob("exact-pay-as-bid-*.yaml"))
    assert lies
    assert replay_gain(lies[0]).same
    assert len(pd.read_parquet(tmp_path / "clean" / "certificates-scenario.parquet")) == 3
    tolerant = CliRunner().invoke(
        app, [*call, "--mechanism", "pay-as-bid", "--tolerance", "50", "--json", "--out", "t"]
    )
    assert tolerant.exit_code == 0
    assert json.loads(tolerant.stdout)["profitable"] is False
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    missing = CliRunner().invoke(app, ["audit", "google-recurring", "--out", "w"])
    assert missing.exit_code == 2
    assert "no data folder" in missing.stderr
    wrong = CliRunner().invoke(app, [*call, "--mechanism", "lottery", "--out", "w"])
    assert wrong.exit_code == 2
    assert not (tmp_path / "w").exists()
