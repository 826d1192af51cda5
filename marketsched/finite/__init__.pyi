from .designing import Design as Design
from .designing import design as design
from .findings import FiniteAudit as FiniteAudit
from .findings import FiniteLie as FiniteLie
from .findings import PairLie as PairLie
from .finite_audit import audit_finite as audit_finite
from .program_certificate import DualCertificate as DualCertificate
from .program_certificate import check_certificate as check_certificate
