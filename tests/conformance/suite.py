"""Kubernetes' own conformance suite: which tests it has, and running some of them on a cluster."""

import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as Xml
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PASSED, FAILED, SKIPPED, UNFINISHED = "passed", "failed", "skipped", "unfinished"
ALONE = "[Serial]"
"""In the name of a test that bears no others beside it."""

_CODE_NAME = re.compile(r"^  codename: (.*)$", re.MULTILINE)
_AREA = re.compile(r"\[sig-([a-z-]+)\] ([A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)*)?")
_STEP = re.compile(r"STEP: (.*?)(?: @ .*)?$", re.MULTILINE)
_LONGEST_REASON = 300
_FOLDER = re.compile(r"(^|[\s=\"'])/(?:\S+/)+")
_PORT = re.compile(r"(127\.0\.0\.1):\d+")
# How long the suite may take to clean up after a test that was broken off.
_GRACE_S = 60


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of one test, and the first words of why not."""

    test: str
    result: str
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The built suite (`make conformance` builds it), and the images' names that it is told.

    kubeconfig: the cluster. report: a folder for logs. kubectl: the program that it runs.
    """

    program: Path
    kubeconfig: Path
    images: Path
    report: Path
    kubectl: str

    def run(self, tests: Sequence[str], name: str, limit_s: int) -> tuple[Result, ...]:
        """These tests, one after the other, in no more time than this; the log has this name."""
        log, junit = self.report / f"{name}.log", self.report / f"{name}.xml"
        junit.unlink(missing_ok=True)
        # Names become patterns: each must be met from its beginning to its end.
        focus = "|".join(re.escape(test) for test in tests)
        argv = (
            str(self.program),
            f"--ginkgo.focus={focus}",
            f"--ginkgo.timeout={limit_s}s",
            f"--ginkgo.grace-period={_GRACE_S // 2}s",
            f"--ginkgo.junit-report={junit}",
            "--ginkgo.no-color",
            "--ginkgo.silence-skips",
            f"--kubeconfig={self.kubeconfig}",
            f"--kubectl-path={self.kubectl}",
            "--provider=skeleton",
            "--dump-logs-on-failure=false",
            "--minStartupPods=0",
            "--allowed-not-ready-nodes=0",
            "--node-schedulable-timeout=60s",
        )
        env = {**os.environ, "KUBE_TEST_REPO_LIST": str(self.images)}
        with (
            log.open("w") as file,
            subprocess.Popen(argv, stdout=file, stderr=file, env=env) as running,  # noqa: S603 -- our own build
        ):
            try:
                running.wait(limit_s + _GRACE_S)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
        return read(junit, tests)

    def wait_for_rest(self, limit_s: int) -> None:
        """Until no namespace of a webhook's test is left, or this long."""
        asked = (self.kubectl, f"--kubeconfig={self.kubeconfig}", "get", "namespaces", "-oname")
        ends_at = time.monotonic() + limit_s
        while time.monotonic() < ends_at:
            said = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603 -- kubectl
            if "namespace/webhook-" not in said.stdout:
                return
            time.sleep(1)


def listed(program: Path) -> tuple[str, ...]:
    """The names of all conformance tests, sorted."""
    asked = subprocess.run(  # noqa: S603 -- our own build
        [program, "--list-conformance-tests"], capture_output=True, text=True, check=True
    )
    # Long names are folded: they go on in lines that are set in further.
    text = re.sub(r"\n    +", " ", asked.stdout)
    return tuple(sorted(_unquoted(each.strip()) for each in _CODE_NAME.findall(text)))


def area_of(test: str) -> str:
    """The group that a test belongs to: who keeps it, and what it is about."""
    found = _AREA.match(test)
    if found is None:
        return "other"
    return f"{found[1]}: {found[2]}" if found[2] else found[1]


def read(junit: Path, tests: Iterable[str]) -> tuple[Result, ...]:
    """What a report says of these tests; those that it does not tell of are unfinished."""
    told = tuple(Xml.parse(junit).iter("testcase")) if junit.exists() else ()  # noqa: S314 -- our own suite wrote it
    by_name = {case.get("name", "").removeprefix("[It] "): case for case in told}
    return tuple(_result(test, by_name) for test in tests)


def _result(test: str, by_name: dict[str, Xml.Element]) -> Result:
    # Behind the name stand the labels.
    case = next((case for name, case in by_name.items() if name.startswith(test)), None)
    if case is None:
        return Result(test=test, result=UNFINISHED)
    inside = next((each for each in case if each.tag in ("failure", "error", "skipped")), None)
    said = "" if inside is None else " ".join((inside.get("message") or "").split())
    if case.get("status") in ("timedout", "interrupted"):
        steps = _STEP.findall(case.findtext("system-err") or "")
        said = f"time was up at the step: {steps[-1] if steps else 'none'}"
    kinds = {"passed": PASSED, "failed": FAILED, "panicked": FAILED, "skipped": SKIPPED}
    result = kinds.get(case.get("status", ""), UNFINISHED)
    # What was not begun when time was up is told as skipped, without a reason of its own.
    if result == SKIPPED and not said.startswith("skipped - "):
        result = UNFINISHED
    return Result(test=test, result=result, said=_anywhere(said)[:_LONGEST_REASON])


def _anywhere(said: str) -> str:
    """Without the folders and ports of the machine that it was said on."""
    return _PORT.sub(r"\1:PORT", _FOLDER.sub(r"\1", said))


def _unquoted(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return text[1:-1].replace('\\"', '"') if text.startswith('"') else text
