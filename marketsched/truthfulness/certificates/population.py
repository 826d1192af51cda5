"""From certificates of some owners to a statement about all of them."""

from __future__ import annotations

from collections.abc import Iterable

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Finite, legal
from marketsched.truthfulness.certificates.bands import share_at_least
from marketsched.truthfulness.certificates.owner_certificate import Certificate


@legal
def certify_population(
    certificates: Iterable[Certificate | float], tolerance: Amount, confidence: float = 0.99
) -> float:
    r"""Return the share of owners that gain at most ``tolerance`` by any misreport, at least.

    By Clopper and Pearson, from owners drawn at random: each of them independently, or one from each of
    as many equal parts of the population (`certify_owners` does the latter; the number of exceedances
    then varies less than the binomial one, and no exceedance is no likelier).

    Parameters
    ----------
    certificates : iterable of Certificate or float
        Of the drawn owners; or bounds of their regrets that are sure, in credits.
    tolerance : float
        Gain that is tolerated, credits, >= 0.
    confidence : float
        In (0, 1), of the statement.

    Returns
    -------
    float
        A share. A certificate may itself be wrong with probability :math:`1 - c`, so for certificates
        of confidence :math:`c < 1` the share of owners certified, less :math:`1 - c`: an owner whose
        gain is above the tolerance has either a larger bound, or one that does not hold.

    Raises
    ------
    InvalidParameterError
        If there is no owner.

    Examples
    --------
    >>> certify_population([0.0] * 459, tolerance=0.01) >= 0.99
    True
    >>> round(certify_population([0.0] * 458 + [0.5], tolerance=0.01), 4)
    0.9856
    """
    bounds, doubt = [], 0.0
    for i, certificate in enumerate(certificates):
        if isinstance(certificate, Certificate):
            bounds.append(certificate.regret_upper)
            doubt = max(doubt, 1 - certificate.confidence)
        else:
            bounds.append(Finite("(-inf, inf)").check(f"certificates[{i}]", certificate))
    if not bounds:
        raise InvalidParameterError("certificates is empty: expected at least one owner")
    within = sum(bound <= tolerance for bound in bounds)
    return max(0.0, share_at_least(within, len(bounds), confidence) - doubt)
