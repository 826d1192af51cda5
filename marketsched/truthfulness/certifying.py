"""The certificates of one mechanism in an audit, made here or by a worker while the market at hand is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pandas as pd

from marketsched.agents.call_limit import CallDidNotEnd, calls_end_within
from marketsched.config.named_mechanisms import NamedMechanism
from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError, TraceError
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.play.parallel import run_many
from marketsched.truthfulness.certificates.owner_certificate import Certificate
from marketsched.truthfulness.certificates.owners import certify_owners
from marketsched.truthfulness.plan import Plan
from marketsched.truthfulness.searches.plays_ahead import Helpers
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


@dataclass(frozen=True)
class Wanted:
    """Which certificates to make."""

    entrant: NamedMechanism
    plan: Plan  # travels without what tells how far it is

    def __repr__(self) -> str:
        """Return what tells it apart from other tasks of the same audit."""
        return f"certificates of {self.entrant.label}"


def make_certificates(wanted: Wanted) -> Certified:
    """Make the certificates of a mechanism where this is called."""
    plan, found = wanted.plan, Certified()

    def note(job: str, certificate: Certificate) -> None:
        if certificate.report is not None:
            found.named[job] = certificate.report

    what = f"{wanted.entrant.label}: certificates"
    plan.tell(what, 0.0)
    try:
        with calls_end_within(plan.call_seconds):
            found.table = certify_owners(
                wanted.entrant.scenario,
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


@contextmanager
def certificates(entrant: NamedMechanism, plan: Plan) -> Iterator[Callable[[], Certified]]:
    """Yield a function that returns the certificates of a mechanism.

    If there are workers, one of them starts to compute the certificates at once. Give the workers no other work until
    the function has returned.
    """
    helpers = plan.helpers
    wanted = Wanted(entrant, replace(plan, helpers=Helpers()))
    if helpers.workers is None:
        found = make_certificates(wanted) if helpers.kept is None else _one(wanted, helpers)
        yield lambda: found
        return
    plan.tell(f"{entrant.label}: certificates, and the market at hand", 0.0)
    aside = ThreadPoolExecutor(1)
    try:
        sent = replace(wanted.plan, tell=_silent, workload=None)  # the worker builds it, which is less than to send it
        yield aside.submit(_one, replace(wanted, plan=sent), helpers).result
    finally:
        aside.shutdown(wait=False)


def _one(wanted: Wanted, helpers: Helpers) -> Certified:
    ((_, found),) = run_many(make_certificates, [wanted], executor=helpers.workers, kept=helpers.kept)
    return found


def _silent(what: str, share: float) -> None:
    """Say nothing of how far a worker is."""
