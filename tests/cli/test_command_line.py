"""The command line: what is wrong is refused with a sentence, before anything starts."""

import os
import subprocess
import sys

import pytest

from weft.cli import launch, main
from weft.cli.output import Lines, News
from weft.version import __version__

WRONG = [
    *[(("launch", "-n", "2", "--hosts", hosts, "x.py"), "expected machines and their ranks, as a:2")
      for hosts in ("a:x,b", "a:0", "", "a:", ":2", "a,,b", "a:-1", "a b", "a:1.5", "a:2:3", ",")],
    (("launch", "-n", "2", "--hosts=-x", "x.py"), "expected machines and their ranks, as a:2"),
    (("launch", "-n", "2", "--max-restarts", "-1", "x.py"), "expected an integer from 0, got '-1'"),
    (("launch", "-n", "2", "--max-restarts", "x", "x.py"), "expected an integer from 0, got 'x'"),
    *[(("launch", "-n", n, "x.py"), f"expected an integer from 1, got '{n}'")
      for n in ("0", "-3", "1e3", "x", "")],
    (("launch", "-n", "1000000", "x.py"), "expected at most "),
    (("launch", "-n", "2", "--threads", "0", "x.py"), "expected an integer from 1, got '0'"),
    (("launch", "-n", "2", "--nproc-per-node", "2", "x.py"), "not allowed with argument"),
    (("launch", "--nproc-per-node", "2", "--hosts", "a:2", "x.py"), "expected --hosts without num"),
    (("launch", "--nproc-per-node", "gpu", "x.py"), "expected a number: there is no CUDA device"),
    (("launch", "-n", "2", "--nnodes", "2", "x.py"), "expected --hosts with 2 machines for --nnod"),
    (("launch", "-n", "2", "--standalone", "--hosts", "a,b", "x.py"), "expected one machine with"),
    (("launch", "x.py"), "one of the arguments -n/-np --nproc-per-node"),
    *[(("bench", "ncf", "--seconds", s), f"expected a number of seconds from 0, got '{s}'")
      for s in ("nan", "inf", "-1", "x")],
    (("bench", "ncf", "--threads", "0"), "expected an integer from 1, got '0'"),
    (("bench", "nosuch"), "weft bench: unknown model 'nosuch'"),
    (("checkpoint", "show", "/nosuch"), "weft checkpoint: there is no /nosuch"),
    (("checkpoint", "look", "x"), "invalid choice: 'look'"),
    (("nosuch",), "invalid choice: 'nosuch'"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_wrong_arguments_are_refused(arguments, text, capsys, monkeypatch):
    monkeypatch.setattr(launch.subprocess, "Popen", lambda *_, **__: pytest.fail("it started"))
    try:
        code = main.main(arguments)
    except SystemExit as end:
        code = end.code
    assert code == 2 and text in capsys.readouterr().err


def test_the_command_alone_lists_what_there_is(capsys):
    assert main.main([]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in main.COMMANDS)
    helped = ["checkpoint", "--help"], "Weft's, safetensors, PyTorch's, TensorFlow's"
    for arguments, text in ((["--version"], f"weft {__version__}"), helped):
        with pytest.raises(SystemExit, match="0"):
            main.main(arguments)
        assert text in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "ranks", "hosts"),
    [
        (["-np", "3"], 3, ""),
        (["--nproc-per-node", "2"], 2, ""),
        (["--nproc_per_node=2", "--hosts", "a,b"], 4, "a:2,b:2"),
        (["-n", "2", "--hosts", "a,b:4"], 2, "a,b:4"),
        (["--standalone", "--nnodes=1:1", "--nproc_per_node=2", "--rdzv-backend=c10d"], 2, ""),
    ],
)
def test_numbers_of_ranks_as_other_launchers_take_them(arguments, ranks, hosts, monkeypatch):
    jobs = []
    monkeypatch.setattr("weft.cli.launch_command.launch", lambda job: jobs.append(job) or 0)
    assert main.main(["launch", *arguments, "x.py", "--own", "1"]) == 0
    assert (jobs[0].ranks, jobs[0].hosts) == (ranks, hosts)
    assert jobs[0].command == ("x.py", "--own", "1")


def test_pytorchs_module_that_starts_ranks_starts_them_under_weft_run(monkeypatch):
    jobs = []
    monkeypatch.setattr("weft.cli.torchrun.launch", lambda job: jobs.append(job) or 0)
    for name in launch.MASTER:
        monkeypatch.setenv(name, "before")
    options = ["--nproc_per_node", "2", "--master_addr", "there", "--max_restarts", "1", "--tee=3"]
    assert main.main(["run", "-m", "torch.distributed.run", *options, "x.py", "--own", "1"]) == 0
    assert (jobs[0].ranks, jobs[0].restarts) == (2, 1)
    assert jobs[0].command == ("-m", "weft", "run", "x.py", "--own", "1")
    assert os.environ["MASTER_ADDR"] == "there" and os.environ["MASTER_PORT"] == "before"


def test_programs_for_torchrun_find_where_to_meet(monkeypatch):
    for name in launch.MASTER:
        monkeypatch.delenv(name, raising=False)
    env = launch._environment(launch.Job(("x.py",), 2), "there", "kept")
    assert env["MASTER_ADDR"] == "127.0.0.1" and 0 < int(env["MASTER_PORT"]) < 1 << 16
    assert launch._master(launch.Job(("x.py",), 2, "a:1,b"))["MASTER_ADDR"] == "a"
    monkeypatch.setenv("MASTER_ADDR", "here")
    assert launch._environment(launch.Job(("x.py",), 2), "there", "kept")["MASTER_ADDR"] == "here"


def test_news_of_ranks_among_their_lines():
    news = News()
    lines = Lines(True, news.take)
    assert lines.take(b"\x1e0\x1f\x1d-1 \n\x1e1\x1fhalf") == [] and news.begun == 1
    assert lines.take(b"\x1d137 weft launch: rank 1 was killed\n\x1e0\x1f\x1d1 \n") == [
        "[1] half\nweft launch: rank 1 was killed\n"
    ]
    assert news.codes == [137, 1] and news.failed_at is not None
    assert lines.take(b"[mpiexec@vm] Sending Ctrl-C to processes as requested\nend\n") == [
        "[0] end\n"
    ]


def test_the_launcher_starts_without_what_training_needs():
    """Each of its seconds delays all ranks."""
    code = "import sys, weft.cli.launch_command; print('weft.eager' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
