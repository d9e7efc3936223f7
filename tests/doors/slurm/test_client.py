"""What every form of the client promises: compiled, compiled with checks, and in Python."""

import os
import signal
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

from doors.slurm.clients import KINDS, PATIENCE_S, Client, client
from doors.slurm.house import House
from doors.slurm.wire import SILENCE, http, reply, wire

AGAIN = {"type": "again", "memo": {"seen": "once"}, "after_ms": 0}
STDIN = {"type": "read", "file": None, "otherwise": None}
SCRIPT = "#!/bin/sh\n#SBATCH -o /dev/null\n"


@pytest.fixture(params=KINDS)
def commands(request: pytest.FixtureRequest, slurm: House) -> Client:
    return client(request.param, slurm)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Of a short name, because the path of a socket may not be long."""
    with TemporaryDirectory(prefix="wire-") as name:
        yield Path(name)


def test_it_prints_and_ends_as_the_server_says(commands: Client, folder: Path) -> None:
    with wire(folder, [[reply(out="to stdout, ä\n", err="to stderr\n", code=7)]]) as server:
        ran = commands.runs("squeue", "-a", env=server.environ)

    assert (ran.code, ran.out, ran.err) == (7, "to stdout, ä\n", "to stderr\n")


def test_an_answer_may_come_in_pieces_of_any_size(commands: Client, folder: Path) -> None:
    whole = reply(out="x" * 300_000)
    pieces = [whole[at : at + 1] for at in range(120)] + [whole[120:70_000], whole[70_000:]]

    with wire(folder, [pieces]) as server:
        ran = commands.runs("squeue", env=server.environ)

    assert (ran.code, len(ran.out)) == (0, 300_000)


def test_an_answer_may_be_chunked(commands: Client, folder: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"8\r\n0 0 3 0\n\r\n3\r\nabc\r\n0\r\n\r\n"

    with wire(folder, [[head, chunks]]) as server:
        ran = commands.runs("squeue", env=server.environ)

    assert (ran.code, ran.out, ran.err) == (0, "abc", "")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", reply(out="abcdef")[:-1]])
def test_a_server_that_hangs_up_is_not_asked_twice(
    commands: Client, folder: Path, answer: bytes
) -> None:
    with wire(folder, [[answer], [reply(out="asked again")]]) as server:
        ran = commands.runs("sbatch", "--wrap=true", env=server.environ)

        assert len(server.heard) == 1
    assert (ran.code, ran.out) == (1, "")
    assert "Unable to contact slurm controller" in ran.err
    assert "the server hung up; start it: muster up" in ran.err


@pytest.mark.parametrize(
    "body",
    [
        b"x",
        b"0 0\n",
        b"0 5 0 0\nabc",
        b"0 0 0 9\nabc",
        b"999 0 0 0\n",
        b"0 99999999999999999999 1 0\n",
    ],
)
def test_an_answer_that_makes_no_sense_harms_nothing(
    commands: Client, folder: Path, body: bytes
) -> None:
    with wire(folder, [[http(body)], [reply(out="asked again")]]) as server:
        ran = commands.runs("squeue", env=server.environ)

        assert len(server.heard) == 1
    assert "asked again" not in ran.out
    assert "AddressSanitizer" not in ran.err
    assert "runtime error" not in ran.err


def test_what_went_wrong_with_a_request_is_printed(commands: Client, folder: Path) -> None:
    problem = b'{"kind":"unauthorized","text":"Say who you are.","where":null}'

    with wire(folder, [[http(problem, status="401 Unauthorized")]]) as server:
        ran = commands.runs("squeue", env=server.environ)

    assert (ran.code, ran.out, ran.err) == (1, "", "squeue: error: Say who you are.\n")


def test_what_is_to_be_done_then_is_done_and_nothing_asked_twice(
    commands: Client, folder: Path
) -> None:
    first = reply(out="first\n", err="warned\n", then=AGAIN)

    with wire(folder, [[first], [reply(out="second\n", code=3)]]) as server:
        ran = commands.runs("sbatch", "--wait", "--wrap=true", env=server.environ)

        memos = [request.call.get("memo") for request in server.heard]
    assert (ran.code, ran.out, ran.err) == (3, "first\nsecond\n", "warned\n")
    assert memos == [None, {"seen": "once"}]


def test_all_forms_send_the_same_call(slurm: House, folder: Path) -> None:
    (slurm.work / "sent.sh").write_text(SCRIPT)
    line = "umask 027; sbatch sent.sh 'ä \"quoted\" \\ \t\x01' ''; cd /; squeue -l"
    env = {"SLURM_TIME_FORMAT": "%H\n", "OTHER": "of no interest", "SBATCH_X": "", "TZ": "UTC"}
    found: list[object] = []

    for kind in KINDS:
        made = client(kind, slurm)
        answers = [reply(then={"type": "read", "file": "sent.sh", "otherwise": None}), reply()]
        # The compiled ones send the script along.
        answers = answers if kind == "python" else [reply()]
        with wire(folder, [*([each] for each in answers), [reply()]]) as server:
            made.out(line, **server.environ, **env)
            sent = [request.call for request in server.heard[-2:]]
        for call in sent:
            # Where they are, what Python and bash add by themselves.
            for name in ("PATH", "ASAN_OPTIONS", "LC_CTYPE", "_"):
                call["env"].pop(name, None)
        found.append(sent)

    assert found[0] == found[1] == found[2]


def test_a_token_and_nothing_else_goes_into_the_head(commands: Client, folder: Path) -> None:
    with wire(folder, [[reply()]]) as server:
        commands.runs("squeue", env=server.environ | {"MUSTER_TOKEN": "secret"})

        head = server.heard[0].head.split("\r\n")
    assert head[0] == "POST /v1/slurm/squeue HTTP/1.1"
    assert "Authorization: Bearer secret" in head


def test_over_a_network_it_asks_as_well(commands: Client) -> None:
    class Far(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(reply(out=f"{self.path}\n"))

        def log_message(self, format: str, *args: object) -> None:
            """Nothing to add to what the test prints."""

    with HTTPServer(("127.0.0.1", 0), Far) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        ran = commands.runs("sinfo", env={"MUSTER_URL": url})
        thread.join()

    assert (ran.code, ran.out) == (0, "/v1/slurm/sinfo\n")


def test_nobody_reads_what_it_prints(commands: Client, folder: Path) -> None:
    read, written = os.pipe()
    os.close(read)

    with (
        wire(folder, [[reply(out="anything\n")]]) as server,
        commands.starts("squeue", env=server.environ, stdout=written) as process,
    ):
        os.close(written)
        process.communicate(timeout=PATIENCE_S)

    # By the signal itself, or as a shell would tell it.
    assert process.returncode in {-signal.SIGPIPE, 128 + signal.SIGPIPE}


@pytest.fixture
def is_interruptible() -> Iterator[None]:
    """What runs in the background ignores SIGINT, and so would all that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("is_interruptible")
def test_it_can_be_interrupted_while_it_waits(commands: Client, folder: Path) -> None:
    with (
        wire(folder, [[SILENCE]]) as server,
        commands.starts("squeue", env=server.environ) as process,
    ):
        assert server.silent.wait(PATIENCE_S)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)

    assert process.returncode in {-signal.SIGINT, 128 + signal.SIGINT}


def test_without_a_server_it_says_so(commands: Client, folder: Path) -> None:
    ran = commands.runs("sbatch", "--wrap=true", env={"MUSTER_HOME": str(folder)})

    assert (ran.code, ran.out) == (1, "")
    assert "Unable to contact slurm controller" in ran.err
    assert "start it: muster up" in ran.err


def test_a_script_is_found_among_the_words(commands: Client) -> None:
    work = commands.house.work
    (work / "one.sh").write_text(SCRIPT + 'test "$1" = one\n')
    (work / "two.sh").write_text(SCRIPT + 'test "$1" = two\n')

    assert commands.shell("sbatch -W -Q one.sh one").code == 0
    assert commands.shell("sbatch -W -Q -n 1 one.sh one").code == 0
    # A word that could be the script, and is the name of the job.
    assert commands.shell("sbatch -W -Q -J one.sh two.sh two").code == 0
    assert commands.shell("sbatch -W -Q -J one.sh < two.sh").code == 1
    assert commands.shell("sbatch -W -Q --wrap ./one.sh -o /dev/null").code == 126


def test_a_script_may_come_from_stdin_or_a_pipe(commands: Client) -> None:
    line = "printf '#!/bin/sh\\nexit 5\\n' | sbatch -W -Q -o /dev/null"

    assert commands.shell(line).code == 5
    assert commands.shell(f"{line} /dev/stdin").code == 5


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("true", "Batch script is empty!"),
        ("printf '#!/bin/sh\\n\\377\\n'", "the script is not UTF-8 text"),
        (
            "(echo '#!/bin/sh'; head -c 4194304 /dev/zero | tr '\\0' '#')",
            "Job script exceeds size limit of 4194304 bytes",
        ),
        ("printf '#!/bin/sh\\n\\0\\n'", "contain a NULL character '\\0'."),
    ],
)
def test_what_is_no_script_is_refused(commands: Client, made: str, message: str) -> None:
    from_stdin = commands.shell(f"{made} | sbatch")
    from_file = commands.shell(f"{made} > bad.sh; sbatch bad.sh")

    assert (from_stdin.code, from_stdin.out) == (1, "")
    assert from_stdin.err.endswith(f"sbatch: error: {message}\n")
    assert from_file == from_stdin


def test_a_script_that_cannot_be_read_is_refused(commands: Client) -> None:
    assert commands.shell("sbatch none.sh").err == "sbatch: error: Unable to open file none.sh\n"
    assert commands.shell("sbatch /").code == 1
    assert commands.shell("sbatch < /").code == 1


def test_the_environment_of_a_job_is_that_of_the_command(commands: Client) -> None:
    env = {"STRANGE": 'ä "quoted" \\ \n\t\x01', "BIG": "x" * 100_000}
    print_it = "'printf %s \"$STRANGE|${#BIG}|${NOT_TEXT-none}\" > env.txt'"

    commands.out(f"NOT_TEXT=$'\\xff' sbatch -W -Q -o /dev/null --wrap {print_it}", **env)

    found = (commands.house.work / "env.txt").read_text()
    assert found == f"{env['STRANGE']}|100000|none"


def test_of_two_variables_of_one_name_the_first_counts(commands: Client, folder: Path) -> None:
    code = (
        "import ctypes, sys; words = (ctypes.c_char_p * 2)(sys.argv[1].encode(), None);"
        "names = (b'SLURM_A=1', b'SLURM_A=2', b'=x', b'none', sys.argv[2].encode());"
        "env = (ctypes.c_char_p * 6)(*names, None);"
        "ctypes.CDLL(None).execve(words[0], words, env)"
    )
    with wire(folder, [[reply()]]) as server:
        url = f"MUSTER_URL=unix:{server.path}"
        path = commands.folder / "squeue"
        commands.out(f'exec {sys.executable} -c "{code}" {path} {url}')

        assert server.heard[0].call["env"]["SLURM_A"] == "1"


def test_words_that_are_no_text_are_answered_too(commands: Client) -> None:
    ran = commands.runs("squeue", b"--name=\xff")

    assert ran.code == 1
    assert "squeue: error: " in ran.err


def test_a_call_that_is_too_large_is_printed(commands: Client) -> None:
    line = "(echo '#!/bin/sh'; head -c 3000000 /dev/zero | tr '\\0' '\\1') > many.sh"
    commands.out(line)

    ran = commands.shell("sbatch many.sh")

    assert (ran.code, ran.out) == (1, "")
    assert "A request may carry 8388608 bytes, not more." in ran.err


def test_one_that_was_installed_by_another_version_is_reported(slurm: House) -> None:
    made = client("compiled", slurm)
    path = made.folder / "squeue"
    content = path.read_bytes()
    assert content.count(b'{"form":1') == 1
    (made.folder / "older").write_bytes(content.replace(b'{"form":1', b'{"form":9'))
    (made.folder / "older").chmod(0o755)

    ran = made.runs("older")

    assert ran.code == 1
    assert "install the commands again: muster slurm install" in ran.err


def test_one_whose_python_is_gone_says_what_to_do(slurm: House, folder: Path) -> None:
    made = client("compiled", slurm)
    content = (made.folder / "squeue").read_bytes()
    before, _, after = content.partition(str(slurm.root / "home").encode() + b"\0/")
    (folder / "older").write_bytes(before + str(slurm.root / "home").encode() + b"\0?" + after)
    (folder / "older").chmod(0o755)

    ran = made.shell(f"{folder}/older", MUSTER_HOME=str(folder))

    assert ran.code == 1
    assert ran.err.endswith("install the commands again: muster slurm install\n")
