"""What sacctmgr lists of accounts, users and associations, field by field."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.doors.slurm.accounting.associations import (
    ROOT,
    accounts_of,
    admin_level,
    associations,
    coordinated,
    coordinators,
    default_account,
    known_users,
)
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.managing.limits import limits_text
from muster.doors.slurm.managing.tables import Named, field
from muster.model.queue import Queue, lineage
from muster.model.site import Site
from muster.model.value import QueuePath, UserName


@dataclass(frozen=True, kw_only=True)
class AssociationRow:
    """An account, a user in an account, or, without an account, a user as such."""

    listing: Listing
    account: str = ""
    user: str = ""
    tree: bool = False

    @property
    def site(self) -> Site:
        return self.listing.site

    @property
    def queue(self) -> Queue | None:
        """The account's own queue: the whole tree has none."""
        return self.site.queues.get(QueuePath(self.account))

    @property
    def path(self) -> QueuePath:
        return QueuePath(self.account)

    @property
    def person(self) -> UserName:
        return UserName(self.user)


def account_rows(listing: Listing, *, tree: bool = False) -> list[AssociationRow]:
    """The whole and every account, each before those below it."""
    paths = sorted(set(listing.site.queues) - {ROOT}, key=lambda path: path.split("/"))
    return [AssociationRow(listing=listing, account=each, tree=tree) for each in (ROOT, *paths)]


def association_rows(listing: Listing, *, tree: bool = False) -> list[AssociationRow]:
    """Every account with those who belong to it."""
    members: dict[str, set[str]] = {ROOT: {ROOT}}
    for each in associations(listing.site):
        members.setdefault(each.account, set()).add(each.user)
    found: list[AssociationRow] = []
    for row in account_rows(listing, tree=tree):
        found.append(row)
        found += [
            AssociationRow(listing=listing, account=row.account, user=user, tree=tree)
            for user in sorted(members.get(row.account, ()))
        ]
    return found


def user_rows(listing: Listing, names: Iterable[str], *, apart: bool) -> list[AssociationRow]:
    """Users who are listed, and those who are named; once for each account if `apart`."""
    listed = sorted({*known_users(listing.site), ROOT, *names})
    if not apart:
        return [AssociationRow(listing=listing, user=user) for user in listed]
    return [
        AssociationRow(listing=listing, user=user, account=account)
        for user in listed
        for account in accounts_of(listing.site, UserName(user)) or (ROOT,)
    ]


def _account(row: AssociationRow) -> str:
    if not row.tree:
        return row.account
    above = sum(each != ROOT for each in lineage(row.path))
    return " " * (above + bool(row.user)) + row.account


def _of_account(get: Callable[[Queue], object]) -> Callable[[AssociationRow], str]:
    """People in an account have none of it."""

    def value(row: AssociationRow) -> str:
        found = None if row.user or row.queue is None else get(row.queue)
        return "" if found is None else str(found)

    return value


def _most_submitted(row: AssociationRow) -> str:
    """Of a user, in whichever account; else what the account, or one above it, allows each."""
    user = row.site.users.get(UserName(row.user))
    above = (row.site.queues.get(path) for path in lineage(row.path))
    bounds = (None if each is None else each.max_submitted_per_user for each in above)
    own = None if user is None else user.max_submitted
    found = next((each for each in (own, *bounds) if each is not None), None)
    return "" if found is None else str(found)


def _grp_tres(row: AssociationRow) -> str:
    if row.user or row.queue is None:
        return ""
    return limits_text(row.queue.quotas, row.listing.nodes)


def _classes(row: AssociationRow) -> str:
    """Every user has every QOS."""
    return ",".join(sorted(row.site.classes))


def _default_class(row: AssociationRow) -> str:
    """Of the account, or of the nearest one above it that has one."""
    above = (row.site.queues.get(path) for path in lineage(row.path))
    return next((each.default_class for each in above if each and each.default_class), "")


def _parent(row: AssociationRow) -> str:
    if row.user or row.account in {ROOT, ""}:
        return ""
    return row.path.rpartition("/")[0] or ROOT


def _organization(row: AssociationRow) -> str:
    """Slurm's default."""
    parent = _parent(row)
    return row.account if parent in {"", ROOT} else parent


def _coordinators(row: AssociationRow) -> str:
    if row.user:
        return ",".join(coordinated(row.site, row.person))
    return ",".join(coordinators(row.site, row.path))


def _nothing(_: AssociationRow) -> str:
    return ""


FIELDS: tuple[Named[AssociationRow], ...] = (
    field("Account Acct", 10, _account),
    field("AdminLevel", 9, lambda row: admin_level(row.site, row.person), "Admin"),
    field("Cluster", 10, lambda row: row.listing.cluster),
    field("Coordinators", 20, _coordinators, "Coord Accounts"),
    field(
        "DefaultAccount",
        10,
        lambda row: ROOT if row.user == ROOT else default_account(row.site, row.person),
        "Def Acct",
    ),
    field("DefaultQOS", 9, _default_class, "Def QOS"),
    field("DefaultWCKey", 10, _nothing, "Def WCKey"),
    field(
        "Description",
        20,
        lambda row: "default root account" if row.account == ROOT else row.account,
        "Descr",
    ),
    field(
        "Fairshare Shares",
        9,
        lambda row: "1" if row.user or row.queue is None else str(row.queue.weight),
        "Share",
    ),
    field("GrpCPUMins", 11, _nothing),
    field("GrpCPURunMins", 13, _nothing),
    field("GrpCPUs", 8, _nothing),
    field("GrpTRES", 13, _grp_tres),
    field("GrpTRESMins", 13, _nothing),
    field("GrpTRESRunMins", 13, _nothing, "GrpTRESRunMin"),
    field("GrpJobs", 7, _of_account(lambda queue: queue.max_jobs)),
    field("GrpJobsAccrue", 13, _nothing),
    field("GrpMemory", 7, _nothing, "GrpMem"),
    field("GrpNodes", 8, _nothing),
    field("GrpSubmitJobs", 9, _of_account(lambda queue: queue.max_submitted), "GrpSubmit"),
    field("GrpWall", 11, _nothing),
    field("ID", 6, _nothing),
    field("LFT", 6, _nothing),
    field("MaxCPUMinsPerJob", 11, _nothing, "MaxCPUMins"),
    field("MaxCPUsPerJob", 8, _nothing, "MaxCPUs"),
    field("MaxJobs", 7, _nothing),
    field("MaxJobsAccrue", 13, _nothing),
    field("MaxNodesPerJob", 8, _nothing, "MaxNodes"),
    field("MaxSubmitJobs", 9, _most_submitted, "MaxSubmit"),
    field("MaxTRESPerJob", 13, _nothing, "MaxTRES"),
    field("MaxTRESPerNode", 14, _nothing),
    field("MaxTRESMinsPerJob", 13, _nothing, "MaxTRESMins"),
    field("MaxWallDurationPerJob", 11, _nothing, "MaxWall"),
    field("MinPrioThreshold", 11, _nothing, "MinPrioThres"),
    field("Organization", 20, _organization, "Org"),
    field("ParentID", 6, _nothing, "Par ID"),
    field("ParentName", 10, _parent),
    field("Partition", 10, _nothing),
    field("Priority", 10, _of_account(lambda queue: queue.priority or None)),
    field("QOS QosLevel", 20, _classes),
    field("RGT", 6, _nothing),
    field("User Name", 10, lambda row: row.user),
)

ASSOCIATION = (
    "cluster,account,user,partition,share,priority,grpjobs,grptres,grpsubmit,grpwall,grptresmins,"
    "maxjobs,maxtresperjob,maxtrespernode,maxsubmit,maxwall,maxtresminsperjob,qos,defaultqos,"
    "grptresrunmins"
)
ASSOCIATION_WITHOUT_LIMITS = "cluster,account,user,partition"
ACCOUNT = "account,description,organization"
ACCOUNT_APART = (
    "account,description,organization,cluster,parentname,user,share,priority,grpjobs,grpnodes,"
    "grpcpus,grpmemory,grpsubmit,grpwall,grpcpumins,maxjobs,maxnodes,maxcpusperjob,maxsubmit,"
    "maxwall,maxcpuminsperjob,qos,defaultqos"
)
USER = "user,defaultaccount,adminlevel"
USER_APART = (
    "user,defaultaccount,adminlevel,cluster,account,partition,share,priority,maxjobs,maxnodes,"
    "maxcpusperjob,maxsubmit,maxwall,maxcpuminsperjob,qos,defaultqos"
)
