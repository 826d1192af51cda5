"""Settings of the suite. The environment is set before anything that reads it is imported."""

import os
import signal
from collections import Counter
from pathlib import Path

from kernel_cache import ROOT, kernel_cache

if "NUMBA_CACHE_DIR" not in os.environ:
    os.environ["NUMBA_CACHE_DIR"] = str(kernel_cache())
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["MARKETSCHED_PROGRESS"] = "off"  # on a busy machine commands would say on standard error how far they are
for variable in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # sums do not depend on the machine, and -n 2 does not fight over cores

import pytest  # noqa: E402
from hypothesis import is_hypothesis_test, settings  # noqa: E402

import marketsched.mechanisms  # noqa: E402
from draws import many  # noqa: E402

# A first call of a kernel compiles, far beyond any deadline. In CI the same examples every time.
settings.register_profile("local", deadline=None, print_blob=True, max_examples=many(100))
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def of_two_trees() -> None:
    """Stop where the package is partly that of another clone, whose `.venv` is in use: tests of it say nothing."""
    files = [Path(module.__file__ or "").resolve() for module in (marketsched, marketsched.mechanisms)]
    if len({file.is_relative_to(ROOT) for file in files}) > 1:
        shown = ", ".join(map(str, files))
        raise pytest.UsageError(f"the package comes from two trees ({shown}): run `make dev` in this clone")


def pytest_configure(config: pytest.Config) -> None:
    """Answer Ctrl-C and a hang-up even where they are ignored at first; let numbers wrap around in plain kernels."""
    of_two_trees()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background; children would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # a suite that `nohup` started
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":  # compiled code wraps around without a word
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered in scalar:RuntimeWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a test that are left to a slower suite, and those that `many` or Hypothesis draws."""
    seen: Counter[tuple[object, str]] = Counter()
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        seen[key := (item.module, item.originalname)] += 1
        for after, mark in (("slow_after", "slow"), ("long_after", "long")):
            if (given := item.get_closest_marker(after)) and seen[key] > given.args[0]:
                item.add_marker(mark)
        if getattr(item.module, "many", None) is many or is_hypothesis_test(item.obj):
            item.add_marker("many")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of recorded traces, or skip the test by name."""
    named = os.environ.get("MARKETSCHED_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no trace data: set MARKETSCHED_DATA to the folder that holds it")
    return folder
