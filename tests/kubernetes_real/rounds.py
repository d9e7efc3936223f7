"""Fault rounds beside a real Kubernetes: something is killed in each, nothing lost or doubled.

`python -m kubernetes_real.rounds --rounds 100 --seed 1`, as `make test-real ROUNDS=100` does.
"""

import argparse
import contextlib
import random
import signal
import sys
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import kill
from pathlib import Path
from typing import Any

from kubernetes_real.images import BUSYBOX
from kubernetes_real.lab import Lab, laboratory, missing
from kubernetes_real.wire import Wire
from live.house import Process, folder, until
from muster import ClientError
from muster.settings import KubernetesCluster, Settings

JOBS_EACH = 4
GPUS_EACH = 4
PATIENCE_S = 300.0
PODS = "/api/v1/namespaces/default/pods"
FINAL = {"completed", "failed", "cancelled"}

_JOB = """
say() {{
    read now rest </proc/uptime
    echo "$MUSTER_JOB_ID $MUSTER_ATTEMPT $1 $now" >> {place}/ledger
}}
say begin
for each in $(seq {ticks}); do sleep 0.5; say runs; done
say end
"""
"""It says all the time that it runs: two runs of a job that do so at a time are seen."""


class Rounds:
    """A Muster, a cluster, jobs that are submitted all the time, and blows."""

    def __init__(self, place: Path, lab: Lab, seed: int) -> None:
        self.place, self.lab = place, lab
        self._chance = random.Random(seed)  # noqa: S311 -- to be repeated, not to be secret
        self.wire = Wire(lab.port)
        lab.write_kubeconfig(lab.keys / "wire.kubeconfig", lab.token, self.wire.port)
        cluster = KubernetesCluster(
            name="lab",
            kubeconfig=str(lab.keys / "wire.kubeconfig"),
            image=BUSYBOX,
            mounts=(str(place),),
        )
        settings = Settings(mail_program="none", nodes=1, gpus="0", clusters=(cluster,))
        self.muster = Process(place / "home", settings)
        self.jobs: list[int] = []
        self.blows: Counter[str] = Counter()
        self.strangers: dict[str, str] = {}
        self.crashed: set[str] = set()

    def play(self, rounds: int) -> None:
        self.muster.start()
        until(self._gpus, lambda count: count == 2 * GPUS_EACH, PATIENCE_S)
        self._let_strangers_in()
        blows: tuple[Callable[[], None], ...] = (
            self._kill_muster,
            self._kill_apiserver,
            self._kill_etcd,
            self._stall_apiserver,
            self._crash_node,
            self._kill_muster_and_apiserver,
            self._kill_etcd_and_muster,
            self._cut_connections,
            self._slow_connections,
            self._lose_answers,
        )
        for number in range(rounds):
            self._submit()
            time.sleep(self._chance.uniform(0, 4))
            blow = blows[number % len(blows)]
            self.blows[blow.__name__.strip("_").replace("_", " ")] += 1
            blow()
            self._say(f"round {number + 1}: {blow.__name__.strip('_')}, {len(self.jobs)} jobs")
        self._until_over()

    def _submit(self) -> None:
        for _ in range(JOBS_EACH):
            tasks = self._chance.choice((1, 1, 1, 2))
            text = _JOB.format(place=self.place, ticks=self._chance.randint(2, 16))
            # A gang is known by its first task.
            text = f'[ "$RANK" = 0 ] || exec sleep 1\n{text}' if tasks > 1 else text
            fields: dict[str, Any] = {"workdir": "/", "pools": ("lab",), "gpus": 1}
            fields |= {"tasks": tasks, "attempts": 9}
            with self.muster.client() as client:
                self.jobs.append(client.submit(["sh", "-c", text], **fields).id)

    def _kill_muster(self) -> None:
        self.muster.kill()
        self.muster.start()

    def _kill_apiserver(self) -> None:
        self.lab.daemons["kube-apiserver"].kill()
        time.sleep(self._chance.uniform(0, 3))
        self.lab.start_apiserver()

    def _kill_etcd(self) -> None:
        self.lab.daemons["etcd"].kill()
        time.sleep(self._chance.uniform(0, 3))
        self.lab.daemons["etcd"].start()

    def _stall_apiserver(self) -> None:
        """Connections stand, and nothing comes over them."""
        pid = self.lab.daemons["kube-apiserver"].pid
        kill(pid, signal.SIGSTOP)
        time.sleep(self._chance.uniform(2, 9))
        kill(pid, signal.SIGCONT)

    def _crash_node(self) -> None:
        node = self._chance.choice(self.lab.nodes)
        self.crashed.add(node.name)
        node.crash()
        time.sleep(self._chance.uniform(0, 5))
        node.revive()

    def _kill_muster_and_apiserver(self) -> None:
        """Either may be back first."""
        self.lab.daemons["kube-apiserver"].kill()
        self.muster.kill()
        self._in_any_order(self.lab.start_apiserver, self.muster.start)

    def _kill_etcd_and_muster(self) -> None:
        self.lab.daemons["etcd"].kill()
        self.muster.kill()
        self._in_any_order(self.lab.daemons["etcd"].start, self.muster.start)

    def _in_any_order(self, *starts: Callable[[], None]) -> None:
        for start in self._chance.sample(starts, len(starts)):
            time.sleep(self._chance.uniform(0, 3))
            start()

    def _cut_connections(self) -> None:
        for _ in range(self._chance.randint(1, 20)):
            self.wire.cut()
            time.sleep(self._chance.uniform(0, 0.5))

    def _slow_connections(self) -> None:
        self.wire.delay_s = self._chance.uniform(0.1, 2)
        time.sleep(self._chance.uniform(2, 9))
        self.wire.delay_s = 0.0

    def _lose_answers(self) -> None:
        """What was asked for is done, and nobody hears of it."""
        self.wire.loses = True
        time.sleep(self._chance.uniform(1, 5))
        self.wire.cut()
        self.wire.loses = False

    def _let_strangers_in(self) -> None:
        """A pod of somebody else on each node."""
        for node in self.lab.nodes:
            container = {
                "name": "theirs",
                "image": BUSYBOX,
                "imagePullPolicy": "Never",
                "command": ["sleep", "86400"],
            }
            spec = {"nodeName": node.name, "restartPolicy": "Always", "containers": [container]}
            name = f"stranger-{node.name}"
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
            self.strangers[name] = self.lab.ask(PODS, body)["metadata"]["uid"]

    def _until_over(self) -> None:
        """However long that takes, if only one ends now and then."""
        left = self._left()
        while left:
            most = len(left)
            left = until(self._left, lambda now, most=most: len(now) < most, PATIENCE_S)

    def _left(self) -> list[int]:
        try:
            with self.muster.client() as client:
                states = {job.id: job.state for job in client.all_jobs()}
        except ClientError:
            return self.jobs
        return [each for each in self.jobs if states.get(each, "completed") not in FINAL]

    def _gpus(self) -> int:
        with self.muster.client() as client:
            return sum(node.gpus for node in client.nodes())

    def _say(self, text: str) -> None:
        sys.stderr.write(text + "\n")

    def faults(self) -> Iterator[str]:
        """What went wrong, a line each."""
        with self.muster.client() as client:
            ends = {each: client.job(each).state for each in self.jobs}
        runs = _runs(self.place / "ledger")
        done = {each.job for each in runs.values() if each.is_done}
        for job, state in ends.items():
            if state != "completed":
                yield f"job {job} is {state}"
            elif job not in done:
                yield f"job {job} is completed, and was never done"
        for run in runs.values():
            if run.times > 1:
                yield f"attempt {run.attempt} of job {run.job} began {run.times} times"
            after = runs.get((run.job, run.attempt + 1))
            if after is not None and after.began < run.last:
                yield f"attempts {run.attempt} and {after.attempt} of job {run.job} ran together"
        yield from self._of_the_cluster()

    def _of_the_cluster(self) -> Iterator[str]:
        until(self._our_pods, lambda names: not names, PATIENCE_S)
        for name, uid in self.strangers.items():
            try:
                found = self.lab.ask(f"{PODS}/{name}")["metadata"]
            except urllib.error.HTTPError:
                yield f"{name}, which is somebody else's, is gone"
                continue
            if found["uid"] != uid or "deletionTimestamp" in found:
                yield f"{name}, which is somebody else's, was deleted"

    def _our_pods(self) -> list[str]:
        with contextlib.suppress(urllib.error.URLError):
            names = [each["metadata"]["name"] for each in self.lab.ask(PODS)["items"]]
            return [name for name in names if name.startswith("muster-")]
        return ["unknown"]


@dataclass
class _Run:
    """What one attempt said of itself, in seconds since the machine began."""

    job: int
    attempt: int
    began: float
    last: float
    times: int = 0
    is_done: bool = False


def _runs(path: Path) -> dict[tuple[int, int], _Run]:
    found: dict[tuple[int, int], _Run] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        job, attempt, what, said = line.split()
        key, at = (int(job), int(attempt)), float(said)
        run = found.setdefault(key, _Run(*key, began=at, last=at))
        run.last = max(run.last, at)
        run.times += what == "begin"
        run.is_done = run.is_done or what == "end"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="kubernetes_real.rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if lacking := missing():
        sys.stdout.write(f"SKIPPED: there is no real Kubernetes here: {lacking}\n")
        return 0
    began = time.monotonic()
    with folder() as place, laboratory(nodes=2, gpus=GPUS_EACH) as lab:
        place.chmod(0o777)
        found = Rounds(place, lab, asked.seed)
        try:
            found.play(asked.rounds)
            faults = list(found.faults())
        finally:
            found.muster.stop()
            found.wire.close()
    lasted = time.monotonic() - began
    for kind, times in sorted(found.blows.items()):
        sys.stdout.write(f"{kind:<26}{times:>5} rounds\n")
    sys.stdout.writelines(f"{each}\n" for each in faults)
    words = f"{asked.rounds} rounds, seed {asked.seed}: {len(found.jobs)} jobs, {lasted:.0f} s"
    sys.stdout.write(f"kubernetes: {words}: {'FAIL' if faults else 'PASS'}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
