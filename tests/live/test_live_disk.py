"""A disk that is really full: refused with one clear error, nothing lost, and on it goes once there is room."""

import shutil
import subprocess
import time

import pytest

from live_tools import PLAIN, check_journal, sow
from marketsched.live.client import LiveClient, LiveError
from marketsched.live.serving import serving


@pytest.fixture
def disk(tmp_path):
    """Give a file system of two megabytes, and a function that makes it larger; skip where none can be made."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options):
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")

    if shutil.which("mount") is None:
        pytest.skip("a file system cannot be mounted here: no mount")
    mount("size=2m,mode=700")
    try:
        yield place, lambda: mount("remount,size=16m")
    finally:
        subprocess.run(["umount", "-l", place], check=False, capture_output=True)


@pytest.mark.slow
def test_a_full_disk_is_refused_survived_and_left_behind(disk):
    place, enlarge = disk
    report, answered = sow(50, 1, deadline=60), []
    with serving(
        {**PLAIN, "max_delay": 100, "requests_per_second": 1e6}, f"{place}/m.db", operator_token_file=place / "token"
    ) as url:
        client = LiveClient(url, (place / "token").read_text().strip(), patience=0.0)
        client.create_owner("ann", deposit=5)

        def submit(n):
            answered.append(client.submit(report, name=str(n), owner="ann", key=f"k{n}")["job"])

        with pytest.raises(LiveError) as refused:
            for n in range(10_000):
                submit(n)
        assert len(answered) > 30
        for _ in range(5):  # and so it stays: the same words, whatever is asked
            with pytest.raises(LiveError) as again:
                submit(len(answered))
            assert refused.value.status == again.value.status == 503
            assert "full" in str(refused.value) and "full" in str(again.value)
            with pytest.raises(LiveError) as health:
                client.health()
            assert health.value.status == 503
            time.sleep(0.3)
        enlarge()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                client.health()
                break
            except LiveError:
                time.sleep(0.1)
        before = len(answered)
        submit(before)  # the key that was refused
        submit(before + 1)
        assert [job["job"] for job in client.jobs(owner="ann")] == answered
    rows = check_journal(f"{place}/m.db")
    assert [row.job for row in rows if row.event == "submit"] == answered
    with serving(None, f"{place}/m.db") as url:
        client = LiveClient(url, (place / "token").read_text().strip())
        assert len(client.jobs()) == len(answered) and client.account("ann")["balance"] == 5
