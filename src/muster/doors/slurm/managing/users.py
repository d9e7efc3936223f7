"""Users and coordinators: who is known by name, where they belong and what they may do. Pure."""

from collections.abc import Iterable, Sequence

from muster.controller.messages import JobQuery
from muster.doors.slurm.accounting.associations import (
    account_named,
    accounts_of,
    coordinated,
    known_users,
    named_accounts,
)
from muster.doors.slurm.managing.edit import (
    NO_CONDITIONS,
    NOTHING_DELETED,
    NOTHING_MODIFIED,
    NOTHING_NEW,
    Edit,
    EditFacts,
    Editing,
    demand_every_qos,
    demand_idle,
    demand_sound,
    refuse,
    user_named,
    warned,
)
from muster.doors.slurm.managing.members import forgotten, joined, left, with_grants
from muster.doors.slurm.managing.words import Assignment, Words, bad_value, meant, number
from muster.doors.slurm.words.errors import SlurmError
from muster.model.site import Grant, Role, Site, User
from muster.model.value import QueuePath, UserName, Value, replace

NAMES = ("Names", "Users")
ACCOUNTS = ("Accounts", "Acct")
NOT_KEPT = ("DefaultWCKey", "WCKeys")
REFUSED = (
    "DefaultQOS GrpCPUs GrpJobs GrpMemory GrpNodes GrpSubmitJobs GrpTRES GrpTRESMins "
    "GrpTRESRunMins GrpWall MaxCPUMinsPerJob MaxCPUsPerJob MaxJobs MaxJobsAccrue MaxNodesPerJob "
    "MaxTRESMinsPerJob MaxTRESPerJob MaxTRESPerNode MaxTRES MaxWallDurationPerJob "
    "MinPrioThreshold NewName Partitions Priority RawUsage"
).split()
HINTS = {
    "DefaultQOS": "give it to the account",
    "MaxJobs": "give a QOS MaxJobsPerUser",
    "MaxTRES": "give a QOS MaxTRESPerUser",
    "MaxWallDurationPerJob": "give a QOS MaxWall",
}
LEVELS = {"None": None, "Operator": Role.QUEUE_ADMIN, "Administrator": Role.ADMIN}
OPTIONS = (
    *NAMES,
    *ACCOUNTS,
    *("AdminLevel", "Clusters", "DefaultAccount", "Fairshare", "Shares", "QosLevel", "QOS"),
    "MaxSubmitJobs",
    *NOT_KEPT,
    *REFUSED,
)


class UserChange(Value):
    """Whom, in which accounts, and what they are to be like."""

    names: tuple[UserName, ...] = ()
    accounts: tuple[str, ...] = ()
    default: str | None = None
    level: str | None = None
    not_kept: tuple[str, ...] = ()
    sets_share: bool = False
    qos: Assignment | None = None
    most_submitted: Assignment | None = None

    @property
    def sets_something(self) -> bool:
        sets = (self.default, self.level, self.not_kept, self.sets_share, self.qos)
        return any(sets) or self.most_submitted is not None


def adding(words: Words, around: EditFacts) -> Editing:
    """`add user alice,bob account=science adminlevel=operator`."""
    wish = _wish(words.what)
    if not wish.names:
        raise SlurmError(" Need name of user to add.")
    if not (wish.accounts or wish.default):
        raise SlurmError(" Need name of account to add user to.")

    def edit(site: Site) -> Edit:
        accounts = [_account(site, name) for name in _unique(wish.accounts, wish.default)]
        pairs = [(user, path) for user in wish.names for path in accounts]
        new = [(user, path) for user, path in pairs if path not in named_accounts(site, user)]
        if not new:
            return Edit(site=site, printed=(NOTHING_NEW,), code=1)
        unknown = [user for user in wish.names if user not in known_users(site)]
        after = site
        for user, path in new:
            after = joined(after, user, path)
        after = _set(after, wish.names, wish)
        demand_sound(after)
        given = _added_lines(wish, unknown, new, around)
        return Edit(site=after, printed=tuple(given), warned=warned(wish.not_kept))

    return edit


def modifying(words: Words, _: EditFacts) -> Editing:
    """`modify user alice set defaultaccount=nlp`."""
    chosen, wish = _wish(words.where), _wish(words.what)
    if not wish.sets_something:
        raise SlurmError(" You didn't give me anything to set")

    def edit(site: Site) -> Edit:
        users = [user for user in chosen.names if user in known_users(site)]
        if not users:
            return Edit(site=site, printed=(NOTHING_MODIFIED,), code=1)
        after = _set(site, users, wish)
        demand_sound(after)
        given = (" Modified users...", *(f"  {user}" for user in users))
        return Edit(site=after, printed=given, warned=warned(wish.not_kept))

    return edit


def deleting(words: Words, around: EditFacts) -> Editing:
    """`delete user alice`, or out of one account: `delete user alice account=nlp`."""
    chosen = _wish(words.where)
    if not (chosen.names or chosen.accounts):
        raise SlurmError(NO_CONDITIONS)

    def edit(site: Site) -> Edit:
        users = [user for user in chosen.names if user in known_users(site)]
        if chosen.accounts:
            return _taken_out(site, users, chosen.accounts, around)
        if not users:
            return Edit(site=site, printed=(NOTHING_DELETED,), code=1)
        demand_idle(around.jobs(JobQuery(users=tuple(users))), around)
        after = site
        for user in users:
            after = forgotten(after, user)
        demand_sound(after)
        given = (" Deleting users...", *(f"  {user}" for user in sorted(users)))
        return Edit(site=after, printed=given, warned=_still_here(site, users))

    return edit


def _still_here(site: Site, users: Iterable[UserName]) -> tuple[str, ...]:
    """A user who is not listed has the role `everyone`, which Slurm's admins do not expect."""
    if site.everyone is Role.VIEWER:
        return ()
    hint = "to keep out who is not listed, set everyone: viewer"
    return tuple(
        f"sacctmgr: warning: {user} has the role {site.everyone} now, as unlisted users; {hint}"
        for user in users
    )


def coordinating(words: Words, _: EditFacts) -> Editing:
    """`add coordinator account=science names=alice`: a queue_admin of the account."""
    wish = _wish(words.what)

    def edit(site: Site) -> Edit:
        accounts = [_coordinated_account(site, name) for name in wish.accounts]
        _demand_known(site, wish.names)
        if not (accounts and wish.names):
            raise SlurmError(" Need both accounts and names to make coordinators.")
        after = site
        for user in wish.names:
            for path in accounts:
                after = coordinator_of(after, user, path)
        if after == site:
            return Edit(site=site, printed=(NOTHING_NEW,), code=1)
        given = [" Adding Coordinator User(s)", *(f"  {user}" for user in wish.names)]
        given += [" To Account(s) and all sub-accounts", *(f"  {path}" for path in accounts)]
        return Edit(site=after, printed=tuple(given))

    return edit


def dismissing(words: Words, _: EditFacts) -> Editing:
    """`delete coordinator account=science names=alice`."""
    wish = _wish(words.where)

    def edit(site: Site) -> Edit:
        accounts = {_coordinated_account(site, name) for name in wish.accounts}
        _demand_known(site, wish.names)
        users = [
            user
            for user in wish.names or known_users(site)
            if set(coordinated(site, user)) & (accounts or set(coordinated(site, user)))
        ]
        if not users:
            return Edit(site=site, printed=(NOTHING_DELETED,), code=1)
        gone = {user: accounts or set(coordinated(site, user)) for user in users}
        after = site
        for user in users:
            after = _dismissed(after, user, gone[user])
        given = [" Removing Coordinators with user name", *(f"  {user}" for user in users)]
        given += [" From Account(s)", *(f"  {path}" for path in sorted(accounts))] * bool(accounts)
        given += [" Removed Coordinators (sub accounts not listed)..."]
        given += [
            f"  U = {user:<9} A = {path:<10}" for user in users for path in sorted(gone[user])
        ]
        return Edit(site=after, printed=tuple(given))

    return edit


def _dismissed(site: Site, user: UserName, accounts: set[QueuePath]) -> Site:
    return with_grants(
        site,
        user,
        lambda grants: tuple(
            replace(each, role=Role.USER) if each.queue in accounts else each for each in grants
        ),
    )


def coordinator_of(site: Site, user: UserName, account: QueuePath) -> Site:
    """The site in which a user coordinates an account and keeps earlier rights."""
    if account in coordinated(site, user):
        return site
    grant = Grant(role=Role.QUEUE_ADMIN, queue=account)

    def change(grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        kept = tuple(each for each in grants if each.queue != account)
        return (*(kept or (() if grants else (Grant(role=site.everyone),))), grant)

    return with_grants(site, user, change)


def levelled(site: Site, user: UserName, level: str) -> Site:
    """The site in which a user has this AdminLevel."""
    role = LEVELS[level]

    def change(grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        high = (Role.QUEUE_ADMIN, Role.ADMIN)
        kept = tuple(each for each in grants if each.queue is not None or each.role not in high)
        return kept if role is None else (*kept, Grant(role=role))

    return with_grants(site, user, change)


def level_named(text: str) -> str:
    found = meant(text, tuple(LEVELS))
    if found is None:
        raise bad_value("AdminLevel", text)
    return found


def _demand_known(site: Site, users: Iterable[UserName]) -> None:
    for user in users:
        if user not in known_users(site):
            raise SlurmError(f" You specified a non-existent user '{user}'.")


def _wish(words: Sequence[Assignment]) -> UserChange:
    wish = UserChange()
    for word in words:
        wish = _with_word(wish, word)
    return wish


def _with_word(wish: UserChange, word: Assignment) -> UserChange:
    if not word.sign:
        return _named(wish, word.name.split(","))
    option = meant(word.name, OPTIONS)
    if option is None:
        raise SlurmError(
            f" Unknown option: {word.text}", " Use keyword 'where' to modify condition"
        )
    if option in REFUSED:
        refuse("a user", option, HINTS.get(option, "users of an account share alike"))
    if option in NAMES:
        return _named(wish, word.values)
    if option in ACCOUNTS:
        return replace(wish, accounts=(*wish.accounts, *word.values))
    if option in NOT_KEPT:
        return replace(wish, not_kept=(*wish.not_kept, option))
    return _with_setting(wish, option, word)


def _with_setting(wish: UserChange, option: str, word: Assignment) -> UserChange:
    if option == "DefaultAccount":
        return replace(wish, default=word.value)
    if option == "AdminLevel":
        return replace(wish, level=level_named(word.value))
    if option in {"QosLevel", "QOS"}:
        return replace(wish, qos=word)
    if option == "MaxSubmitJobs":
        return replace(wish, most_submitted=word)
    if option not in {"Fairshare", "Shares"}:
        return wish
    if word.value != "1":
        refuse("a user", f"Fairshare={word.value}", "users of an account share alike")
    return replace(wish, sets_share=True)


def _named(wish: UserChange, names: Iterable[str]) -> UserChange:
    new = [UserName(user_named(name)) for name in names if name]
    return replace(wish, names=tuple(dict.fromkeys((*wish.names, *new))))


def _unique(accounts: tuple[str, ...], default: str | None) -> list[str]:
    return list(dict.fromkeys((*accounts, *(() if default is None else (default,)))))


def _coordinated_account(site: Site, name: str) -> QueuePath:
    path = account_named(site, name)
    if path is None:
        raise SlurmError(f" You specified a non-existent account '{name}'.")
    return path


def _account(site: Site, name: str) -> QueuePath:
    path = account_named(site, name)
    if path is None:
        raise SlurmError(
            f" This account '{name}' doesn't exist.",
            "        Contact your admin to add this account.",
            " No associations or wckeys created.",
        )
    return path


def _set(site: Site, users: Iterable[UserName], wish: UserChange) -> Site:
    demand_every_qos(site, wish.qos)
    for user in users:
        if wish.level is not None:
            site = levelled(site, user, wish.level)
        if wish.default is not None:
            site = _with_default(site, user, wish.default)
        if wish.most_submitted is not None:
            site = with_most_submitted(site, user, wish.most_submitted)
    return site


def with_most_submitted(site: Site, user: UserName, word: Assignment) -> Site:
    """`MaxSubmitJobs=5`, or -1 for no bound."""
    most = number(word, "MaxSubmitJobs")
    known = site.users.get(user, User(name=user))
    return replace(site, users={**site.users, user: replace(known, max_submitted=most)})


def _with_default(site: Site, user: UserName, name: str) -> Site:
    path = account_named(site, name)
    if path is None or path not in accounts_of(site, user):
        raise SlurmError(
            " Can't modify because these users aren't associated with new default account "
            f"'{name}'...",
            f"  U = {user}",
        )
    known = site.users.get(user)
    if known is None:
        site = joined(site, user, path)
        known = site.users[user]
    return replace(site, users={**site.users, user: replace(known, default_queue=path)})


def _taken_out(
    site: Site, users: Sequence[UserName], names: Sequence[str], around: EditFacts
) -> Edit:
    paths = {path for name in names if (path := account_named(site, name)) is not None}
    pairs = [(u, path) for u in users for path in sorted(paths) if path in named_accounts(site, u)]
    if not pairs:
        return Edit(site=site, printed=(NOTHING_DELETED,), code=1)
    live = [
        job
        for job in around.jobs(JobQuery(users=tuple(users)))
        if (job.spec.user, job.spec.queue) in pairs
    ]
    demand_idle(live, around)
    after = site
    for user, path in pairs:
        after = left(after, user, path)
    demand_sound(after)
    given = [" Deleting user associations...", *(_association(*pair, around) for pair in pairs)]
    return Edit(site=after, printed=tuple(given))


def _association(user: UserName, path: QueuePath, around: EditFacts) -> str:
    return f"  C = {around.cluster:<10} A = {path:<20} U = {user:<9}"


def _added_lines(
    wish: UserChange,
    unknown: Sequence[UserName],
    new: Sequence[tuple[UserName, QueuePath]],
    around: EditFacts,
) -> list[str]:
    given: list[str] = []
    if unknown:
        given += [" Adding User(s)", *(f"  {user}" for user in unknown)]
    if wish.default or wish.level:
        given.append(" Settings =")
        given += [f"  Default Account = {wish.default}"] if wish.default else []
        given += [f"  Admin Level     = {wish.level}"] if wish.level else []
    given.append(" Associations =")
    given += [f"  U = {user:<9} A = {path:<10} C = {around.cluster:<10}" for user, path in new]
    return [
        *given,
        " Non Default Settings",
        *(["  Fairshare     = 1"] if wish.sets_share else []),
    ]
