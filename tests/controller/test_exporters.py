"""dcgm-exporters that are read node by node, over real sockets, as good and as bad as they come."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
import urllib3

from controller.desk import LAB, node
from muster.model.errors import BackendDownError
from muster.model.site import MeasuredElsewhere
from muster.model.value import Instant
from muster.telemetry.readers.asking import OthersReader
from muster.telemetry.readers.dcgm_queries import UnreadableAnswerError
from muster.telemetry.readers.fetching import Bound, fetched

NOW = Instant(1_800_000_000_000)

PAGE = """# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-x",device="nvidia0",Hostname="pod-7"} 93
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-y",modelName="a \\"b\\" \\\\ {c}"} 0 1700000000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-x",Hostname="pod-7"} 2048
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-x",Hostname="pod-7"} 412.5
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-x",Hostname="pod-7"} 0.812
DCGM_FI_PROF_SM_UTIL_RATIO{gpu="0",UUID="GPU-x",Hostname="pod-7"} 0.812
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-x",Hostname="pod-7"} 9223372036854775794
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-y",Hostname="pod-7"} NaN
DCGM_FI_DEV_SM_CLOCK{gpu="1"} fast
DCGM_FI_DEV_SM_CLOCK{gpu="7",UUID="GPU-z"} 1980
DCGM_FI_DEV_MEM_CLOCK{{{{
"""


class Exporter:
    """Serves a page for each node; those that it does not know are not found."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.tokens: list[str | None] = []
        exporter = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exporter.tokens.append(self.headers["Authorization"])
                page = exporter.pages.get(self.path.strip("/").partition("/")[0])
                self.send_response(404 if page is None else 200)
                self.end_headers()
                self.wfile.write((page or "").encode())

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/{{node}}/metrics"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Drops:
    """Sends another byte as soon as there is room for one, and never comes to an end."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}/"
        self._ending = Event()
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._ending.set()
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            peer, _ = self._server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while not self._ending.wait(0.01):
                    peer.sendall(b"#")


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    yield made
    made.close()


def reader(url: str, nodes: int = 2, token_file: str = "") -> OthersReader:
    source = MeasuredElsewhere(cluster=LAB, exporter=url, token_file=token_file)
    found = [node(f"n{number}", 2) for number in range(1, nodes + 1)]
    made = OthersReader(source, lambda: found, lambda: NOW)
    made.ask_once()
    return made


def test_each_node_is_asked_and_its_gpus_are_known_by_their_place(
    exporter: Exporter, tmp_path: Path
) -> None:
    exporter.pages["n1"] = PAGE
    token = tmp_path / "token"
    token.write_text("t0ken\n", encoding="utf-8")

    samples = reader(exporter.url, token_file=str(token)).samples(NOW)

    first, second = samples.devices
    assert samples.secondhand
    assert (first.device, first.node, first.busy_milli) == ("n1/gpu0", "n1", 930)
    assert (first.memory_used_bytes, first.power_mw) == (2048 << 20, 412_500)
    assert first.activity is not None
    assert first.activity.sm_milli == 812
    # What is no number, and what old exporters give where they have none, is not there.
    assert (first.temperature_c, second.temperature_c, second.sm_clock_mhz) == (None, None, None)
    assert (second.busy_milli, second.product) == (0, 'a "b" \\ {c}')
    # The other node does not answer, and disappears.
    assert len(samples.devices) == 2
    assert set(exporter.tokens) == {"Bearer t0ken"}


def test_who_does_not_answer_is_said_to_the_administrator(exporter: Exporter) -> None:
    exporter.pages["n1"] = PAGE
    asked = reader(exporter.url, nodes=3)

    assert asked.trouble() == (
        f"cluster lab is not measured whole by {exporter.url}: "
        "n2: it answered with status 404, and 1 more nodes"
    )

    exporter.pages.update(n2=PAGE, n3=PAGE)
    asked.ask_once()

    assert asked.trouble() == ""


@pytest.mark.parametrize("page", ["", 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-x"} NaN'])
def test_an_answer_that_tells_of_no_gpu_is_trouble(exporter: Exporter, page: str) -> None:
    exporter.pages["n1"] = page

    assert "it tells of none of 2 GPUs" in reader(exporter.url, nodes=1).trouble()


def test_an_answer_that_comes_by_drops_is_not_awaited() -> None:
    drops = Drops()
    bound = Bound(answer_s=0.2, most_mib=1)

    with pytest.raises(UnreadableAnswerError, match=r"not whole after 0\.2 s"):
        fetched(urllib3.PoolManager(retries=False), drops.url, headers={}, bound=bound)

    drops.close()


@pytest.mark.parametrize("page", ["", "\x00\xff nonsense {", "DCGM_FI_DEV_GPU_UTIL 3\n" * 1_000])
def test_what_is_no_page_tells_of_nothing(exporter: Exporter, page: str) -> None:
    exporter.pages["n1"] = page

    assert reader(exporter.url).samples(NOW).devices == ()


def test_where_no_exporter_answers_that_is_said(exporter: Exporter) -> None:
    gone = reader(exporter.url)

    with pytest.raises(BackendDownError, match="n1: it answered with status 404"):
        gone.samples(NOW)


def test_a_page_without_end_is_not_read_to_its_end(exporter: Exporter) -> None:
    exporter.pages["n1"] = "#" * (9 << 20)

    with pytest.raises(BackendDownError, match="more than 8 MiB"):
        reader(exporter.url, nodes=1).samples(NOW)


def test_many_nodes_are_for_a_prometheus(exporter: Exporter) -> None:
    with pytest.raises(BackendDownError, match="201 nodes are too many"):
        reader(exporter.url, nodes=201).samples(NOW)

    assert exporter.tokens == []
