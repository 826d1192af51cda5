"""The truthfulness audit: what an owner can gain by misreporting, bounded from above and searched for from below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.truthfulness.audited import Audit as Audit
    from marketsched.truthfulness.certificate import Certificate as Certificate
    from marketsched.truthfulness.certificate import certify as certify
    from marketsched.truthfulness.checks import CheckReport as CheckReport
    from marketsched.truthfulness.checks import MechanismCheckError as MechanismCheckError
    from marketsched.truthfulness.checks import check_mechanism as check_mechanism
    from marketsched.truthfulness.checks import mechanism_checks as mechanism_checks
    from marketsched.truthfulness.families import Family as Family
    from marketsched.truthfulness.families import default_families as default_families
    from marketsched.truthfulness.findings import Deviation as Deviation
    from marketsched.truthfulness.findings import Deviations as Deviations
    from marketsched.truthfulness.misreports import Misreport as Misreport
    from marketsched.truthfulness.misreports import misreport_from as misreport_from
    from marketsched.truthfulness.owners import certify_owners as certify_owners
    from marketsched.truthfulness.parts import Parts as Parts
    from marketsched.truthfulness.population import certify_population as certify_population
    from marketsched.truthfulness.scoring import score as score
    from marketsched.truthfulness.searching import search as search
    from marketsched.truthfulness.shrinking import shrink as shrink
    from marketsched.truthfulness.situation import Other as Other
    from marketsched.truthfulness.situation import Situation as Situation
    from marketsched.truthfulness.situation import situation_of as situation_of
    from marketsched.truthfulness.situation import situations_of as situations_of
    from marketsched.truthfulness.utilities import UtilityTable as UtilityTable
    from marketsched.truthfulness.utilities import expected_utilities as expected_utilities
    from marketsched.truthfulness.witness import Witness as Witness
    from marketsched.truthfulness.witness_file import replay_witness as replay_witness
    from marketsched.truthfulness.witness_file import save_witness as save_witness

_LAZY: dict[str, tuple[str, ...]] = {
    "audited": ("Audit",),
    "certificate": (
        "Certificate",
        "certify",
    ),
    "checks": (
        "CheckReport",
        "MechanismCheckError",
        "check_mechanism",
        "mechanism_checks",
    ),
    "families": (
        "Family",
        "default_families",
    ),
    "findings": (
        "Deviation",
        "Deviations",
    ),
    "misreports": (
        "Misreport",
        "misreport_from",
    ),
    "owners": ("certify_owners",),
    "parts": ("Parts",),
    "population": ("certify_population",),
    "scoring": ("score",),
    "searching": ("search",),
    "shrinking": ("shrink",),
    "situation": (
        "Other",
        "Situation",
        "situation_of",
        "situations_of",
    ),
    "utilities": (
        "UtilityTable",
        "expected_utilities",
    ),
    "witness": ("Witness",),
    "witness_file": (
        "replay_witness",
        "save_witness",
    ),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
