"""The certificates of one mechanism in an audit."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from marketsched.agents.call_limit import CallDidNotEnd, calls_end_within
from marketsched.config.named_mechanisms import NamedMechanism
from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError, TraceError
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.certificates.owner_certificate import Certificate
from marketsched.truthfulness.certificates.owners import certify_owners
from marketsched.truthfulness.plan import Plan
from marketsched.truthfulness.situations.announced import PaymentBesideMenu


@dataclass
class Certified:
    """Certificates of a mechanism, as `certify_owners` returns them; none, with the reason in ``errors``.

    ``named`` has, by job, the reports that certificates say beat the truth; ``beside_menu`` says which payment is none
    of its menu, if one is.
    """

    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    named: dict[str, StatementOfWork] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    beside_menu: str = ""

    @property
    def menus(self) -> bool:
        """Whether they rest on menus at arrival."""
        return "rests_on" in self.table


def make_certificates(entrant: NamedMechanism, plan: Plan) -> Certified:
    """Make the certificates of a mechanism."""
    found = Certified()

    def note(job: str, certificate: Certificate) -> None:
        if certificate.report is not None:
            found.named[job] = certificate.report

    what = f"{entrant.label}: certificates"
    plan.tell(what, 0.0)
    try:
        with calls_end_within(plan.call_seconds):
            found.table = certify_owners(
                entrant.scenario,
                plan.owners,
                seed=plan.seed,
                confidence=plan.confidence,
                samples=plan.samples,
                menu_lies=plan.menu_lies,
                data=plan.data,
                workload=plan.workload,
                progress=lambda done, total: plan.tell(f"{what}, {done} of {total}", 0.0),
                note=note,
            )
    except (MissingDataError, TraceError):  # no mechanism's fault
        raise
    except (InvalidParameterError, CallDidNotEnd) as error:  # no menu: only the search is left
        found.errors.append(f"no certificates: {error}")
        found.beside_menu = error.mischarged if isinstance(error, PaymentBesideMenu) else ""
    except Exception as error:  # a mechanism may raise anything: named, and the audit goes on
        found.errors.append(f"no certificates: {type(error).__name__}: {error}")
    return found
