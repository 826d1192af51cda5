"""Name the folder for compiled kernels: one for each state of the sources that hold kernels.

numba's cache looks at the file of a kernel alone, so an edit of a compiled helper in another file would
bring back the old result. Run as a script it prints the folder; Makefile and conftest.py both use it.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "marketsched", "mechanisms", "relaxed_lp")


def kernel_cache() -> Path:
    """Return the folder, keyed by every source that speaks of numba, and by the bounds-check option."""
    key = hashlib.sha256(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            source = path.read_bytes()
            if b"numba" in source:
                key.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + source)
    return ROOT / ".cache" / "numba" / key.hexdigest()[:16]


if __name__ == "__main__":
    print(kernel_cache())
