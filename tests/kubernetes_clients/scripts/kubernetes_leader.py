"""Two users of the kubernetes package's leader election: the second leads when the first stops."""

import sys
import threading
from collections.abc import Callable

from kubernetes import client, config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

PLACE = sys.argv[1]
STEPS_DOWN = "steps down"


def main() -> None:
    config.load_kube_config()
    leads = {name: threading.Event() for name in ("first", "second")}
    first = campaign("first", lambda: steps_down(leads["first"]))
    assert leads["first"].wait(60)
    print("leader", holder())
    second = campaign("second", lambda: steps_down(leads["second"]))
    first.join(60)
    assert leads["second"].wait(60)
    print("then", holder())
    second.join(60)


def steps_down(leads: threading.Event) -> None:
    leads.set()
    # The election takes a leader whose work fails out of office.
    raise RuntimeError(STEPS_DOWN)


def campaign(name: str, leading: Callable[[], None]) -> threading.Thread:
    how = electionconfig.Config(
        LeaseLock("leader", PLACE, name),
        lease_duration=4,
        renew_deadline=3,
        retry_period=1.1,
        onstarted_leading=leading,
        onstopped_leading=lambda: None,
    )
    found = threading.Thread(target=leaderelection.LeaderElection(how).run, daemon=True)
    found.start()
    return found


def holder() -> str:
    lease = client.CoordinationV1Api().read_namespaced_lease("leader", PLACE)
    return lease.spec.holder_identity


if __name__ == "__main__":
    main()
