from .auditing import audit_finite as audit_finite
from .certificate import DualCertificate as DualCertificate
from .certificate import check_certificate as check_certificate
from .designing import Design as Design
from .designing import design as design
from .findings import FiniteAudit as FiniteAudit
from .findings import FiniteLie as FiniteLie
from .findings import PairLie as PairLie
