"""What every Slurm command runs: send the words to the server, print what comes back.

It starts in a few milliseconds because it imports almost nothing: `_socket` and `_json` are the
parts of `socket` and `json` that are built in. Nothing else of Muster is imported here.
"""

import _json
import _socket
import os
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Importing `typing` takes longer than a whole request.
    from typing import Any

SUBMITTING = frozenset({"sbatch", "srun", "salloc"})
NEEDED = (
    *("SLURM", "SBATCH_", "SALLOC_", "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SPRIO_"),
    *("TZ", "COLUMNS"),
)
"""What the names of variables begin with that other commands may want to know."""

SOCKET = "muster.sock"
SHARED = "/var/lib/muster"
MOST_SCRIPT = 4 * 1_024 * 1_024
FORM = 1
"""Of calls and answers, which the server compares with its own."""


def main(command: str, home: str | None = None, handed: int | None = None) -> None:
    """Use the command as it was called; ends the process.

    handed: where to read what the server has answered already, asked by the compiled client.
    """
    try:
        code = use(command, sys.argv[1:], home, handed)
    except BrokenPipeError:
        code = 141
    except KeyboardInterrupt:
        code = 130
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = 141
    # Nothing is left to clean up, and the interpreter's own end takes as long as its beginning.
    os._exit(code)


def use(command: str, argv: list[str], home: str | None, handed: int | None) -> int:
    """Ask until the server says that it is over."""
    call = call_of(command, argv)
    while True:
        try:
            reply = ask(command, call, home) if handed is None else _reply(command, *_kept(handed))
        except OSError as error:
            return unreachable(command, error)
        except Exception:  # noqa: BLE001 -- a proxy's page, say, which nobody reads as a traceback
            return unreachable(command, OSError("what answers there is something else"))
        handed = None
        write(2, reply["err"])
        write(1, reply["out"])
        then = reply["then"]
        if then is None:
            return reply["code"]
        try:
            code = go_on(command, call, then)
        except (LookupError, TypeError):
            code = _outdated(command)
        if code is not None:
            return code


def call_of(command: str, argv: list[str]) -> "dict[str, Any]":
    """The words of the command and what it finds around it."""
    return {
        "form": FORM,
        "argv": argv,
        "cwd": _folder(),
        "env": _environment(command),
        "umask": _umask(),
        "tty": os.isatty(1),
        "host": posix.uname().nodename,
    }


def go_on(command: str, call: "dict[str, Any]", then: "dict[str, Any]") -> int | None:
    """Do what the server wants done here; a number ends the command with it."""
    kind = then["type"]
    if kind == "read":
        return _read_script(command, call, then)
    if kind == "again":
        _pause(then["after_ms"])
        call["memo"] = then["memo"]
        return None
    if kind == "prompt":
        call["memo"] = _typed(then)
        return None
    if kind == "write":
        call["memo"] = then["memo"]
        try:
            with open(then["file"], "w", encoding="utf-8") as file:
                file.write(then["text"])
        except OSError as error:
            show(2, command + ": error: " + then["file"] + ": " + str(error.strerror) + "\n")
            return 1
        return None
    return _outdated(command)


def _outdated(command: str) -> int:
    show(2, command + ": error: this command is older than the server; install it again\n")
    return 1


def ask(command: str, call: "dict[str, Any]", home: str | None) -> "dict[str, Any]":
    """One request and its answer, as values."""
    body = _written(call).encode()
    return _reply(command, *request("POST", "/v1/slurm/" + command, body, home))


def _reply(command: str, status: int, answer: bytes) -> "dict[str, Any]":
    """A line with the code and the sizes of three parts, and then the parts."""
    if status != 200:
        text = command + ": error: " + _read(answer.decode())["text"] + "\n"
        return {"err": text.encode(), "out": b"", "code": 1, "then": None}
    line, _, rest = answer.partition(b"\n")
    numbers = [int(word) for word in line.split() if word.isdigit()]
    if len(numbers) != 4 or sum(numbers[1:]) != len(rest):
        raise OSError("it is of another version; install the commands again")
    code, err, out, _ = numbers
    then = rest[err + out :]
    return {
        "err": rest[:err],
        "out": rest[err : err + out],
        "code": code,
        "then": _read(then.decode()) if then else None,
    }


def _kept(handed: int) -> tuple[int, bytes]:
    with open(handed, "rb") as file:
        return _parted(file.read())


def request(method: str, path: str, body: bytes, home: str | None) -> tuple[int, bytes]:
    """Over the unix socket, or to MUSTER_URL if there is one."""
    url = os.environ.get("MUSTER_URL", "")
    if url.startswith("http"):
        return _request_far(method, url, path, body)
    where = url[5:] if url.startswith("unix:") else _socket_path(home)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(where)
        token = os.environ.get("MUSTER_TOKEN")
        head = [method + " " + path + " HTTP/1.1", "Host: muster", "Connection: close"]
        head += ["Content-Type: application/json", "Content-Length: " + str(len(body))]
        if token:
            head.append("Authorization: Bearer " + token)
        _send(connection, "\r\n".join([*head, "", ""]).encode() + body)
        return _answer(connection)
    finally:
        connection.close()


def _send(connection: _socket.socket, content: bytes) -> None:
    try:
        connection.sendall(content)
    except (BrokenPipeError, ConnectionResetError):
        # A server that takes no more may have said why: that is read like any answer.
        return


def _answer(connection: _socket.socket) -> tuple[int, bytes]:
    parts: list[bytes] = []
    while True:
        part = connection.recv(1_048_576)
        if not part:
            break
        parts.append(part)
    return _parted(b"".join(parts))


def _parted(received: bytes) -> tuple[int, bytes]:
    """The status and the body of an answer that came over a socket."""
    head, end, body = received.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    if b"transfer-encoding: chunked" in lines:
        body = _unchunked(body)
    sizes = [line[15:] for line in lines if line.startswith(b"content-length:")]
    if not end or (sizes and len(body) < int(sizes[0])):
        raise OSError("the server hung up")
    return int(head.split(b" ", 2)[1]), body


def _unchunked(body: bytes) -> bytes:
    found: list[bytes] = []
    while body:
        size, _, body = body.partition(b"\r\n")
        count = int(size.split(b";")[0] or b"0", 16)
        if not count:
            break
        found.append(body[:count])
        body = body[count + 2 :]
    return b"".join(found)


def _request_far(method: str, url: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Rare, so that it may take its time to import what it needs."""
    import ssl  # noqa: PLC0415 -- see above
    import urllib.error  # noqa: PLC0415 -- see above
    import urllib.request  # noqa: PLC0415 -- see above

    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("MUSTER_TOKEN"):
        headers["Authorization"] = "Bearer " + token
    trusted = ssl.create_default_context(cafile=os.environ.get("MUSTER_CA"))
    asked = urllib.request.Request(  # noqa: S310 -- begins with http
        url.rstrip("/") + path, body, headers, method=method
    )
    try:
        with urllib.request.urlopen(asked, context=trusted) as answer:  # noqa: S310 -- the same
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def _socket_path(home: str | None) -> str:
    """As MUSTER_HOME says, or as it was when the commands were installed, or the usual place."""
    given = os.environ.get("MUSTER_HOME") or home
    if given:
        return given + "/" + SOCKET
    own = os.path.expanduser("~") + "/.local/state/muster/" + SOCKET
    shared = SHARED + "/" + SOCKET
    return own if os.getuid() and os.path.exists(own) else shared


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now


def _environment(command: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in os.environ.items():
        # What is no text cannot be sent, and no job should depend on it.
        is_wanted = command in SUBMITTING or name.startswith(NEEDED)
        if is_wanted and _is_text(name + value):
            found[name] = value
    return found


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_script(command: str, call: "dict[str, Any]", then: "dict[str, Any]") -> int | None:
    """The script, with the caller's rights."""
    name = then["file"]
    try:
        with open(0 if name is None else name, "rb", closefd=name is not None) as file:
            content = file.read(MOST_SCRIPT + 1)
    except OSError:
        text = then["otherwise"] or "Unable to open file " + str(name)
        show(2, command + ": error: " + text + "\n")
        return 1
    try:
        text = content.decode()
    except UnicodeDecodeError:
        show(2, command + ": error: the script is not UTF-8 text\n")
        return 1
    if len(content) > MOST_SCRIPT:
        show(2, command + ": error: Job script exceeds size limit of 4194304 bytes\n")
        return 1
    call["script"] = {"text": text, "name": name}
    return None


def _typed(then: "dict[str, Any]") -> "dict[str, str]":
    """The memo with the next line; without it, at the end of the input."""
    show(1, then["text"])
    if then["seconds"] and os.isatty(0) and not _is_typed(then["seconds"]):
        return dict(then["memo"], late="yes")
    line = sys.stdin.readline()
    if not line:
        show(1, "\n")
        return then["memo"]
    if then["echo"] and not os.isatty(0):
        # As readline does: a script's lines stand between the answers to them.
        show(1, line if line.endswith("\n") else line + "\n")
    return dict(then["memo"], typed=line.rstrip("\n"))


def _is_typed(seconds: int) -> bool:
    import select  # noqa: PLC0415 -- rarely needed

    return bool(select.select([0], [], [], seconds)[0])


def _pause(after_ms: int) -> None:
    if after_ms:
        import time  # noqa: PLC0415 -- rarely needed

        time.sleep(after_ms / 1_000)


def show(number: int, text: str) -> None:
    write(number, text.encode(errors="surrogateescape"))


def write(number: int, content: bytes) -> None:
    """Everything, whatever a pipe takes at once."""
    left = memoryview(content)
    while left:
        left = left[os.write(number, left) :]


def unreachable(command: str, error: OSError) -> int:
    if command == "sbatch":
        text = "Batch job submission failed: Unable to contact slurm controller (connect failure)"
        show(2, "sbatch: error: " + text + "\n")
    elif command == "squeue":
        text = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
        show(2, text)
    else:
        show(2, command + ": error: Unable to contact slurm controller (connect failure)\n")
    show(2, command + ": error: no Muster answers: " + str(error) + "; start it: muster up\n")
    return 1


def _written(value: "Any") -> str:
    """As JSON; the encoder of `json` costs more time to import than all the rest takes."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _json.encode_basestring_ascii(value)
    if isinstance(value, dict):
        return "{" + ",".join(map(_written_pair, value.items())) + "}"  # pyright: ignore[reportUnknownArgumentType] -- ours
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"  # pyright: ignore[reportUnknownArgumentType] -- ours
    return str(value)


def _written_pair(pair: "tuple[str, Any]") -> str:
    return _written(pair[0]) + ":" + _written(pair[1])


class _Way:
    """How the scanner of `json` is to read."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None


def _read(text: str) -> "dict[str, Any]":
    scanner: Any = _json.make_scanner(_Way)  # pyright: ignore[reportArgumentType] -- has what it reads
    return scanner(text, 0)[0]
