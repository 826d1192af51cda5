"""`check_policy` finds the lie that pays at a policy without payments; the suite for one's own policy does too."""

import pytest

from marketsched.cores import check_policy
from marketsched.cores.audit.worlds import PublishedGames
from marketsched.cores.testing import policy_tests

pytestmark = pytest.mark.compiled  # audits play thousands of slots: too long for plain kernels

test_free_shares_in_one_line = policy_tests(
    PublishedGames("ogasched", "fairness"),
    search_worlds=4,
    fresh_worlds=20,
    except_for={"truthful in drawn worlds": "without payments, asking for more pays"},
)


@pytest.mark.slow
@pytest.mark.long
def test_a_policy_without_payments_fails():
    report = check_policy(PublishedGames("ogasched"), search_worlds=4, fresh_worlds=20)
    assert {result.name for result in report.failed} == {"truthful in drawn worlds"}
    assert "score_lie(world" in report["truthful in drawn worlds"].detail
