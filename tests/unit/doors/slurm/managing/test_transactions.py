"""Transactions: changes of the rules, found among everything that the audit log holds."""

from muster.doors.slurm.managing.transactions import is_meant, transactions
from muster.model.history import AuditEntry
from muster.model.value import Instant, UserName

JOBS = 2_500


def entry(at: int, action: str, detail: str = "") -> AuditEntry:
    return AuditEntry(
        at=Instant(at),
        user=UserName("root"),
        door="slurm",
        action=action,
        subject="site" if action == "apply" else "job 1",
        detail=detail,
    )


def log(*entries: AuditEntry) -> list[tuple[str, str, str]]:
    newest_first = sorted(entries, key=lambda each: -each.at)

    def page(before: Instant | None, limit: int) -> tuple[AuditEntry, ...]:
        older = [each for each in newest_first if before is None or each.at < before]
        return tuple(older[:limit])

    return [(each.action, each.where, each.detail) for each in transactions(page)]


def test_a_change_is_reported_in_slurms_words() -> None:
    found = log(
        entry(1, "apply", "sacctmgr add account nlp,vision parent=science fairshare=3"),
        entry(2, "apply", "sacctmgr update user where name=bob set adminlevel=operator"),
        entry(3, "apply", "sacctmgr remove qos urgent"),
        entry(4, "apply", "sacctmgr add coordinator account='the lab' names=bob"),
    )

    assert found == [
        ("Add Accounts", "nlp,vision", "parent=science fairshare=3"),
        ("Modify Users", "bob", "adminlevel=operator"),
        ("Remove QOS", "urgent", ""),
        ("Add Account Coord", "bob", "account=the lab"),
    ]


def test_a_change_by_another_door_is_reported_as_it_was_noted() -> None:
    assert log(entry(1, "apply", "cluster.yaml")) == [("Modify Site", "site", "cluster.yaml")]


def test_what_is_about_jobs_is_left_out_and_does_not_hide_older_changes() -> None:
    jobs = [entry(at, "submit") for at in range(10, 10 + JOBS)]

    assert log(entry(1, "apply", "sacctmgr add qos urgent"), *jobs) == [("Add QOS", "urgent", "")]


def test_an_action_is_found_however_it_is_written() -> None:
    assert is_meant("Add Accounts", "add accounts")
    assert is_meant("Add Accounts", "AddAccount")
    assert not is_meant("Add Accounts", "Add Users")
