"""`python -m conformance PROGRAMS`: Kubernetes' own conformance tests against a Muster of its own.

`make conformance` builds the programs and calls it. FOCUS is a pattern of names of tests.
"""

import argparse
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path

from conformance import results
from conformance.images import make_images, repositories
from conformance.suite import ALONE, PASSED, UNFINISHED, Result, Suite, area_of, listed
from containers.images import MODEST, own_podman
from doors.kubernetes.cluster import kubernetes_house

TEST_S = 180
"""So long the tests of a batch may take, each of them on average."""

MOST = 12
"""So many tests are in one batch: what is broken off is lost."""

ONE_PORT = ("api-machinery: AdmissionWebhook",)
"""Areas whose tests each run a pod that listens on the same port of the machine."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="conformance")
    parser.add_argument("programs", type=Path, help="the folder with e2e.test and agnhost")
    parser.add_argument("--focus", default="", help="only tests whose names have this pattern")
    parser.add_argument("--side-by-side", type=int, default=2, help="batches at a time")
    parser.add_argument("--failed", action="store_true", help="only those that did not pass")
    parser.add_argument("--reports", type=Path, help="where logs are kept")
    asked = parser.parse_args()
    known = results.read()
    every = listed(asked.programs / "e2e.test")
    chosen = [
        test
        for test in every
        if re.search(asked.focus, test)
        and not (asked.failed and test in known and known[test].result == PASSED)
    ]
    reports = asked.reports or Path(tempfile.mkdtemp(prefix="muster-conformance-"))
    reports.mkdir(parents=True, exist_ok=True)
    found: dict[str, Result] = {}
    for some in run(asked.programs, chosen, reports, asked.side_by_side):
        found.update({each.test: each for each in some})
        # After each batch, beside what others found: a run that is broken off has been of use.
        known = results.read() | {each.test: each for each in some}
        results.keep({test: known.get(test) or _not_run(test) for test in every})
        results.PAGE.write_text(
            "".join(f"{line}\n" for line in results.page(results.read().values()))
        )
    passed = sum(each.result == PASSED for each in found.values())
    sys.stdout.write(f"{passed} of {len(found)} passed; logs are in {reports}\n")
    return 0


def run(
    programs: Path, tests: Sequence[str], reports: Path, workers: int
) -> Iterator[list[Result]]:
    """Start a Muster with the images that the suite asks for, and run these tests on it."""
    with own_podman() as podman:
        folder = Path(tempfile.mkdtemp(prefix="muster-images-"))
        make_images(podman, programs / "agnhost", folder)
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as house:
            suite = Suite(
                program=programs / "e2e.test",
                kubeconfig=house.root / "kubeconfig",
                images=repositories(folder / "repositories.yaml"),
                report=reports,
                kubectl=shutil.which("kubectl", path=house.environ["PATH"]) or "kubectl",
            )
            yield from _all(suite, tests, workers)
        shutil.rmtree(folder, ignore_errors=True)


def _all(suite: Suite, tests: Sequence[str], workers: int) -> Iterator[list[Result]]:
    """Batches by area, some beside each other; those that bear no others come last."""
    together = [test for test in tests if ALONE not in test]
    alone = [test for test in tests if ALONE in test]
    for some, count in ((together, workers), (alone, 1)):
        areas = [list(of) for _, of in groupby(sorted(some, key=area_of), area_of)]
        batches = [each[at : at + MOST] for each in areas for at in range(0, len(each), MOST)]
        with ThreadPoolExecutor(count) as pool:
            begun = [pool.submit(_batch, suite, each) for each in batches]
            for done in as_completed(begun):
                yield done.result()


def _batch(suite: Suite, tests: list[str]) -> list[Result]:
    """The tests of an area; those not reached when time was up are tried again by themselves."""
    area = area_of(tests[0])
    name = re.sub(r"\W+", "-", area).strip("-") + f"-{zlib.crc32(tests[0].encode()):08x}"
    began = time.monotonic()
    if area in ONE_PORT:
        found = [_after_others(suite, each, f"{name}-{place}") for place, each in enumerate(tests)]
    else:
        found = list(suite.run(tests, name, TEST_S * len(tests)))
        for place, each in enumerate(found):
            if each.result == UNFINISHED and len(tests) > 1:
                found[place] = suite.run([each.test], f"{name}-{place}", TEST_S)[0]
    passed = sum(each.result == PASSED for each in found)
    took_s = time.monotonic() - began
    sys.stderr.write(f"{area}: {passed} of {len(tests)} passed, {took_s:.0f} s\n")
    return found


def _after_others(suite: Suite, test: str, name: str) -> Result:
    """When nothing is left of the one before: their pods would want the same port."""
    suite.wait_for_rest(TEST_S)
    return suite.run([test], name, TEST_S)[0]


def _not_run(test: str) -> Result:
    return Result(test=test, result=UNFINISHED)


if __name__ == "__main__":
    sys.exit(main())
