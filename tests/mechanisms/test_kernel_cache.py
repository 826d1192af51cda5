"""Kernels that call kernels of other files notice when those change."""

import os
import subprocess
import sys

import pytest

HELPER = "from numba import njit\n\n@njit(cache=True)\ndef one():\n    return {}\n"
MAIN = """
from helper import one
from marketsched.mechanisms.kernel_cache import kernel_over

@kernel_over(one)
def both():
    return one() + 1

if __name__ == "__main__":
    print(both(), sum(both.stats.cache_hits.values()))
"""


@pytest.mark.slow
@pytest.mark.compiled
def test_a_kept_kernel_is_compiled_anew_when_a_file_below_it_changes(tmp_path):
    """And only then: the second run finds the first one's kernel."""
    (tmp_path / "main.py").write_text(MAIN)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    def printed(returns, written=0):
        (tmp_path / "helper.py").write_text(HELPER.format(returns))
        os.utime(tmp_path / "helper.py", (written, written))
        run = [sys.executable, str(tmp_path / "main.py")]
        return subprocess.run(run, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert [printed("1"), printed("1"), printed("2", 9)] == ["2 0\n", "2 1\n", "3 0\n"]
