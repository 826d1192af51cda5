"""A real cluster on this machine, and the commands: what a bridge relies on, by Slurm itself."""

import getpass
import stat

import pytest

from marketsched.slurm.accounting import ACCOUNT, Accounting
from marketsched.slurm.accounts import PROGRAMS as ACCOUNTING
from marketsched.slurm.accounts import AccountingCluster
from marketsched.slurm.cluster import PROGRAMS, OneHostCluster, missing_programs
from marketsched.slurm.commands import Slurm, SlurmError, SlurmJob
from slurm_trials import WITH_SLURM, until


def row(**more):
    """Return a job as ``squeue --json`` writes it."""
    fields = {
        "job_id": 7, "name": "wrap", "user_name": "ann", "comment": "market:ann.1", "job_state": "PENDING",
        "state_reason": "JobHeldAdmin", "priority": 0, "node_count": 2, "submit_time": 5, "start_time": 0,
        "end_time": 0, "exit_code": 0, "restart_cnt": 0, "time_limit": 10,
    }  # fmt: skip
    return fields | more


def test_jobs_are_read_as_the_controller_writes_them():
    held = SlurmJob.of(row())
    assert held.held and not held.active and not held.over and held.comment == "market:ann.1"
    assert not SlurmJob.of(row(priority=4294901759)).held
    assert not SlurmJob.of(row(job_state="RUNNING", priority=0)).held
    assert SlurmJob.of(row(job_state="RUNNING", start_time=9)).started == 9
    assert SlurmJob.of(row(job_state="PENDING", start_time=9)).started == 0  # a forecast
    assert SlurmJob.of(row(job_state="COMPLETING")).active and SlurmJob.of(row(job_state="NODE_FAIL")).over


@pytest.mark.parametrize(("status", "code"), [(0, 0), (768, 3), (15, 143), (9 + 128, 137)])
def test_exit_codes_are_those_of_a_shell(status, code):
    assert SlurmJob.of(row(job_state="FAILED", exit_code=status)).exit_code == code


def test_commands_that_fail_or_are_missing_are_one_error(tmp_path):
    nowhere = Slurm({"PATH": str(tmp_path)})
    with pytest.raises(SlurmError, match="squeue: No such file or directory: expected Slurm's commands on the PATH"):
        nowhere.jobs()
    with pytest.raises(SlurmError, match=r"no answer in 0\.1 s"):
        Slurm(timeout=0.1).run("sleep", "5")
    with pytest.raises(SlurmError, match="false: status 1"):
        Slurm().run("false")


def test_a_cluster_says_what_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_programs(fast=True) == ["slurmctld", "slurmd", "squeue", "sbatch", "munged", "faketime"]
    with pytest.raises(SlurmError, match=r"slurmctld, .* not found: expected Debian's slurmctld"):
        OneHostCluster(tmp_path)


STAND_INS = {  # for programs that are not installed: each notes its command in a file, and daemons go on for ever
    "munged": 'for each; do case $each in --socket=*) touch "${each#--socket=}";; esac; done; exec sleep 1000',
    "squeue": """echo '{"errors": [], "jobs": []}'""",
    "sinfo": "echo n1 idle; echo n2 idle",
    "faketime": 'shift 2; FAKETIME=fast FAKETIME_SHARED=a LD_PRELOAD= exec "$@"',
    "sacctmgr": "",
    "mariadb": 'test -e "$COUNT" || { touch "$COUNT"; echo asleep >&2; exit 1; }',  # it answers the second time
    "mariadb-install-db": "",
    "mariadbd": 'for each; do case $each in --socket=*) touch "${each#--socket=}";; esac; done; exec sleep 1000',
    "sbatch": 'cat > "$COUNT"; echo "12;market"',
    "scontrol": "echo AccountingStorageType = accounting_storage/slurmdbd",
    "scancel": "",
    "sshare": 'echo "ann||1|60|0.5|0.25|1|1"',
}


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """Put programs on the PATH that stand for Slurm's, and return a function that gives the commands of one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in {*PROGRAMS, *ACCOUNTING, *STAND_INS}:
        script = STAND_INS.get(name, "exec sleep 1000")
        (programs / name).write_text(f'#!/bin/sh\necho "$@" >> {programs}/{name}.calls\n{script}\n')
        (programs / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.setenv("SLURM_CONF", "that of another cluster")
    return lambda name: (programs / f"{name}.calls").read_text().splitlines()


def settings_in(path):
    """Return the lines of a configuration by their key, and those of nodes by name."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith(("NodeName", "Partition"))]
    nodes = [dict(word.split("=", 1) for word in line.split()) for line in path.read_text().splitlines() if " " in line]
    return dict(line.split("=", 1) for line in lines), {each["NodeName"]: each for each in nodes if "NodeName" in each}


def test_a_cluster_writes_its_configuration_starts_its_daemons_and_ends_them(stand_ins, tmp_path):
    (tmp_path / "submit.lua").write_text("-- plain")
    folder = tmp_path / "c"
    own = {"KillWait": "7"}
    with OneHostCluster(folder, 2, cpus=3, gpus=["a100:2"], lua=tmp_path / "submit.lua", settings=own) as cluster:
        daemons = dict(cluster.daemons)
        assert list(daemons) == ["munged", "slurmctld", "n1", "n2"]
        assert cluster.environment["SLURM_CONF"] == str(folder / "etc" / "slurm.conf")
        cluster.kill("n2")
        assert daemons["n2"].poll() == -9 and all(daemons[name].poll() is None for name in ("munged", "n1"))
    assert not cluster.daemons and all(each.poll() is not None for each in daemons.values())
    assert stand_ins("slurmctld") == ["-D -c"] and sorted(stand_ins("slurmd")) == ["-D -N n1", "-D -N n2"]
    settings, nodes = settings_in(folder / "etc" / "slurm.conf")
    ports = [settings["SlurmctldPort"], *(each["Port"] for each in nodes.values())]
    assert len(set(ports)) == 3 and list(nodes) == ["n1", "n2"]
    assert [each["CPUs"] for each in nodes.values()] == ["3", "3"]
    assert [each.get("Gres") for each in nodes.values()] == ["gpu:a100:2", None]
    assert settings["KillWait"] == "7" and settings["JobSubmitPlugins"] == "lua" and settings["GresTypes"] == "gpu"
    assert (folder / "etc" / "job_submit.lua").read_text() == "-- plain"
    assert settings["SlurmUser"] == settings["SlurmdUser"] == getpass.getuser()
    assert settings["AuthType"] == "auth/munge" and f"--{settings['AuthInfo']} " in stand_ins("munged")[0]
    files = [line.rpartition("=")[2] for line in (folder / "etc" / "gres.conf").read_text().splitlines()]
    assert len(set(files)) == 2 and all((folder / "etc" / file.rpartition("/")[2]).exists() for file in files)
    key = folder / "munge" / "key"
    assert len(key.read_bytes()) == 1024 and stat.S_IMODE(key.stat().st_mode) == 0o400


def test_actions_are_slurm_s_own_commands(stand_ins, tmp_path):
    slurm = Slurm()
    assert slurm.submit("#!/bin/sh\nsleep 9\n", "--hold", "--nodes=2") == 12
    assert (tmp_path / "count").read_text() == "#!/bin/sh\nsleep 9\n" and slurm.run("sbatch") == "12;market\n"
    assert (tmp_path / "count").read_text() == ""  # without a script its input is empty, and not this process's
    assert stand_ins("sbatch") == ["--parsable --hold --nodes=2", ""]
    for action in (slurm.release, slurm.requeue_held, slurm.hold, slurm.cancel):
        action(7)
    slurm.update(JobId=7, TimeLimit="+2")
    assert slurm.configuration() == {"AccountingStorageType": "accounting_storage/slurmdbd"}
    assert slurm.qos_names() == []  # of an accounting that knows none yet
    assert stand_ins("scancel") == ["7"] and stand_ins("sacctmgr") == ["-nP show qos format=name"]
    actions = ["release 7", "requeuehold 7", "hold 7", "update JobId=7 TimeLimit=+2", *["show config"] * 2]
    assert stand_ins("scontrol") == actions
    assert slurm.node_states("market") == {"n1": "idle", "n2": "idle"} and slurm.usable_nodes("market") == 2


def test_a_clock_that_runs_as_usual_needs_no_faketime(stand_ins, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin" / "faketime").unlink()
    assert OneHostCluster(tmp_path / "c").clock.rate == 1.0
    with pytest.raises(SlurmError, match="faketime not found"):
        OneHostCluster(tmp_path / "c", rate=2.0)


def test_qualities_of_service_are_entered_before_users(stand_ins, tmp_path):
    folder = tmp_path / "c"
    accounting = Accounting(folder, {"free": ["Flags=NoReserve"], "paid": ["Priority=9"]}, {"ann": "free"})
    with OneHostCluster(folder, 2, accounting=accounting) as cluster:
        assert list(cluster.daemons) == ["munged", "mariadbd", "slurmdbd", "slurmctld", "n1", "n2"]
    every = "qos=free,paid defaultqos=free"
    entered = ["cluster market", "qos free Flags=NoReserve", "qos paid Priority=9", f"account {ACCOUNT} cluster=market"]
    if getpass.getuser() != "root":
        entered.append(f"user {getpass.getuser()} account={ACCOUNT} {every}")
    entered.append(f"user ann account={ACCOUNT} qos=free defaultqos=free")
    calls = stand_ins("sacctmgr")
    assert [call.removeprefix("-i add ") for call in calls if " add " in call] == entered
    assert f"-i modify cluster market set {every}" in calls
    settings, _ = settings_in(folder / "etc" / "slurm.conf")
    base, _ = settings_in(folder / "etc" / "slurmdbd.conf")
    assert settings["AccountingStoragePort"] == base["DbdPort"] != base["StoragePort"]
    assert base["StoragePass"] in (folder / "etc" / "db.sql").read_text()
    assert all(stat.S_IMODE((folder / "etc" / name).stat().st_mode) == 0o600 for name in ("db.sql", "slurmdbd.conf"))
    with pytest.raises(SlurmError, match="1 with accounting"):
        OneHostCluster(folder, accounting=accounting, rate=2.0)


def test_accounts_are_entered_with_their_shares_once_the_database_answers(stand_ins, tmp_path):
    accounts = {"physics/": 2, "physics/optics/": 1, "ann/": 3}
    qos = {"high": (5.0, 0.5)}
    with AccountingCluster(tmp_path / "c", 2, accounts=accounts, qos=qos, rate=60.0) as cluster:
        assert list(cluster.daemons) == ["mariadbd", "slurmdbd", "slurmctld", "n1", "n2"]
        (row,) = cluster.shares()
        assert row["account"] == "ann" and row["user"] == "" and row["factor"] == "0.25"
    user = getpass.getuser()
    assert stand_ins("sacctmgr")[1:] == [
        "-i -Q add cluster market",
        "-i -Q add qos high priority=5 usagefactor=0.500000",
        "-i -Q add account physics parent=root fairshare=2",
        "-i -Q add account optics parent=physics fairshare=1",
        "-i -Q add account ann parent=root fairshare=3",
        f"-i -Q add user {user} account=optics fairshare=1 qos=normal,high defaultqos=normal",
        f"-i -Q add user {user} account=ann fairshare=1 qos=normal,high defaultqos=normal",
    ]
    assert len(stand_ins("mariadb")) == 2  # it was asked again
    settings, _ = settings_in(tmp_path / "c" / "etc" / "slurm.conf")
    base, _ = settings_in(tmp_path / "c" / "etc" / "slurmdbd.conf")
    assert settings["AuthType"] == base["AuthType"] == "auth/none" and "AuthInfo" not in settings
    assert settings["AccountingStoragePort"] == base["DbdPort"] != base["StoragePort"]
    assert f"--port={base['StoragePort']} " in stand_ins("mariadbd")[0]
    with pytest.raises(SlurmError, match=r"rate = 1\.0: expected a number > 1"):
        AccountingCluster(tmp_path / "c", accounts=accounts, rate=1.0)


@pytest.mark.slow
@WITH_SLURM
def test_a_job_is_held_let_go_put_back_and_ends_with_its_exit_code(tmp_path):
    with OneHostCluster(tmp_path, 2, settings={"MessageTimeout": "1"}) as cluster:
        slurm = cluster.slurm
        assert slurm.usable_nodes("market") == 2
        number = slurm.submit(
            "#!/bin/sh\nexec sleep 60\n", "--hold", "--nodes=2", "--comment=market:a b", "--output=/dev/null"
        )
        (job,) = slurm.jobs("market")
        assert (job.id, job.held, job.nodes, job.comment) == (number, True, 2, "market:a b")
        for _ in range(2):  # each is safe to take twice
            slurm.release(number)
        until(lambda: slurm.jobs()[0].state == "RUNNING")
        slurm.requeue_held(number)
        until(lambda: slurm.jobs()[0].held)
        assert slurm.jobs()[0].restarts == 1
        for _ in range(2):
            slurm.cancel(number)
        until(lambda: slurm.jobs()[0].state == "CANCELLED")
        second = slurm.submit("#!/bin/sh\nexit 3\n", "--output=/dev/null")
        until(lambda: slurm.jobs()[1].state == "FAILED")
        assert (slurm.jobs()[1].id, slurm.jobs()[1].exit_code) == (second, 3)
        cluster.kill("n2")
        cluster.kill("slurmctld")
        with pytest.raises(SlurmError, match="squeue --json: Failed while looking for jobs"):
            slurm.jobs()
        cluster.start_controller()
        until(lambda: slurm.jobs() is not None)  # it remembers what it saved: some seconds before it was killed
        slurm.update(NodeName="n2", State="DOWN", Reason="pulled out")
        until(lambda: slurm.usable_nodes("market") == 1)
