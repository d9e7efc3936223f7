"""`scontrol show assoc_mgr`: users, accounts and QOS as the planner knows them."""

from collections.abc import Iterator

from muster.doors.slurm.call import Call, Door
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.users import uid_of
from muster.model.queue import JobClass, Queue
from muster.model.site import Site, User


def associations(_ids: tuple[str, ...], _line: Parsed, call: Call, door: Door) -> str:
    """Three lists, each under its heading."""
    listing = Listing(call, door)
    site = listing.site
    parts = [
        "Current Association Manager state\n",
        "User Records\n",
        *(_user(each, site) for _, each in sorted(site.users.items())),
        "\nAssociation Records\n",
        *_accounts(site, listing.cluster),
        "\nQOS Records\n",
        *(_qos(each, number) for number, (_, each) in enumerate(sorted(site.classes.items()), 1)),
    ]
    return "\n".join(parts) + "\n"


def _user(user: User, site: Site) -> str:
    account = user.default_queue or site.default_queue
    admin = any(grant.queue is None and grant.role == "admin" for grant in user.grants)
    level = "Administrator" if admin else "None"
    name = f"UserName={user.name}({uid_of(user.name)})"
    return f"{name} DefAccount={account} DefWckey= AdminLevel={level}"


def _accounts(site: Site, cluster: str) -> Iterator[str]:
    for number, (path, queue) in enumerate(sorted(site.queues.items()), 1):
        parent = path.rpartition("/")[0]
        yield "\n".join(
            [
                (
                    f"ClusterName={cluster} Account={path} UserName= Partition= "
                    f"Priority={queue.priority} ID={number}"
                ),
                f"    SharesRaw/Norm/Level/Factor={queue.weight}/0.00/0/0.00",
                f"    ParentAccount={parent} DefAssoc=No",
                f"    GrpJobs={_most(queue.max_jobs)} GrpSubmitJobs={_most(queue.max_submitted)}",
                f"    GrpTRES={_limits(queue)}",
            ]
        )


def _limits(queue: Queue) -> str:
    found = [f"gres/{line.scope.meter}={line.limit}" for line in queue.quotas if line.limit]
    return ",".join(found)


def _qos(each: JobClass, number: int) -> str:
    preempts = ",".join(each.preempts)
    return "\n".join(
        [
            f"QOS={each.name}({number})",
            f"    MaxWallPJ={'' if each.max_time is None else each.max_time // 60_000}",
            f"    Preempt={preempts}",
            f"    PreemptMode={each.preempt_mode.upper()}",
            f"    Priority={each.priority}",
        ]
    )


def _most(most: int | None) -> str:
    return "N" if most is None else str(most)
