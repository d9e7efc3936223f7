"""Routes about the rules, the people and their keys."""

from collections.abc import Callable

from muster.api.pages import AuditPage, RehearsalAsked, TokenPage, UserPage
from muster.api.site import (
    MeDocument,
    QuotaAsked,
    RehearsalDocument,
    SiteChange,
    SiteText,
    TokenAsked,
    TokenDocument,
)
from muster.controller.messages import Rehearsal
from muster.controller.use_cases.tokens import TokenRequest
from muster.doors.config.checks import cautions
from muster.doors.config.diff import changes, described
from muster.doors.config.parse import site_from
from muster.doors.config.quota import with_quota
from muster.doors.config.show import site_text
from muster.doors.request.bad import BadRequestError, read
from muster.doors.request.parse import Wanted, chosen
from muster.doors.rest.operation import Asked, Content, Operation, Parameter, done
from muster.doors.rest.show_jobs import stamp
from muster.doors.rest.show_site import (
    audit_document,
    rehearsal_document,
    role_text,
    token_document,
    user_document,
)
from muster.doors.rest.wanted import wanted_of
from muster.doors.rest.words import wait_names, waiting
from muster.doors.units import duration
from muster.model.job import Job, JobSpec
from muster.model.site import Role, Site
from muster.model.value import JobId, QueuePath, UserName, replace
from muster.telemetry.alerting.reading import is_rules

YAML = "application/yaml"


async def _me(asked: Asked) -> MeDocument:
    roles = tuple(map(role_text, asked.queries.people.grants(asked.caller)))
    return MeDocument(user=asked.caller.user, door=asked.caller.door, roles=roles)


async def _users(asked: Asked) -> UserPage:
    site = asked.queries.site()
    users = tuple(user_document(user) for _, user in sorted(site.users.items()))
    return UserPage(users=users, everyone=site.everyone.value)


async def _tokens(asked: Asked) -> TokenPage:
    return TokenPage(tokens=tuple(map(token_document, asked.queries.people.tokens(asked.caller))))


async def _make_token(asked: Asked) -> TokenDocument:
    document: TokenAsked = asked.document
    wish = TokenRequest(
        user=UserName(document.user) if document.user else asked.caller.user,
        role=chosen("role", Role, document.role),
        queue=QueuePath(document.queue) if document.queue else None,
        lifetime=read("lifetime", duration, document.lifetime),
    )
    made = await done(asked.service.make_token(asked.caller, wish))
    return token_document(made.token, made.secret)


async def _revoke_token(asked: Asked) -> TokenDocument:
    return token_document(await done(asked.service.revoke(asked.caller, asked.path["id"])))


async def _site(asked: Asked) -> Content:
    text = await asked.read(site_text, asked.queries.site())
    return Content(body=text.encode(), media=YAML)


async def _apply(asked: Asked) -> SiteChange:
    document: SiteText = asked.document
    if is_rules(document.text):
        return await _apply_rules(asked, document)
    site = await asked.read(site_from, document.text)
    return await _changed(asked, _change_to(site), dry_run=document.dry_run)


async def _apply_rules(asked: Asked, document: SiteText) -> SiteChange:
    """A file of rules in Prometheus' YAML: all of the administrators' own."""
    applied = asked.service.apply_rules(asked.caller, document.text, dry_run=document.dry_run)
    change = await done(applied)
    lines = (
        *(f"- rule {name}" for name in change.removed),
        *(f"+ rule {name}" for name in change.added),
        *(("~ rules of alerts",) if change.is_changed else ()),
    )
    return SiteChange(changes=lines, applied=change.is_changed and not document.dry_run)


async def _set_quota(asked: Asked) -> SiteChange:
    document: QuotaAsked = asked.document
    change = _quota_change(document)
    return await _changed(asked, change, dry_run=asked.flag("dry_run"))


async def _changed(asked: Asked, change: Callable[[Site], Site], *, dry_run: bool) -> SiteChange:
    applied = asked.service.apply(asked.caller, change, dry_run=dry_run, describe=described)
    diff = await done(applied)
    lines = await asked.read(changes, diff.before, diff.after)
    is_applied = not dry_run and diff.before != diff.after
    all_cautions = (*diff.cautions, *cautions(diff.after))
    return SiteChange(changes=lines, applied=is_applied, cautions=all_cautions)


def _change_to(site: Site) -> Callable[[Site], Site]:
    return lambda _: site


def _quota_change(document: QuotaAsked) -> Callable[[Site], Site]:
    return lambda site: with_quota(site, document)


async def _rehearse(asked: Asked) -> RehearsalDocument:
    document: RehearsalAsked = asked.document
    match document:
        case RehearsalAsked(submit=submit, site=None, quota=None) if submit is not None:
            want = await wanted_of(asked, submit)
            found = await asked.think(_rehearsed_submission, asked, want.spec)
            return replace(found, text=_whose_turn(want) + found.text)
        case RehearsalAsked(submit=None, site=str(text), quota=None):
            # To read rules takes long: it is for those who may change some.
            asked.queries.people.demand_anywhere(asked.caller, Role.QUEUE_ADMIN)
            site = await asked.read(site_from, text)
            return await asked.think(_rehearsed_change, asked, _change_to(site))
        case RehearsalAsked(submit=None, site=None, quota=quota) if quota is not None:
            return await asked.think(_rehearsed_change, asked, _quota_change(quota))
        case _:
            raise BadRequestError("", "name exactly one of `submit`, `site` and `quota`")


def _whose_turn(want: Wanted) -> str:
    """What the answer is about, where that is not the job itself at once."""
    first = f"The first of {len(want.indices)} jobs: " if len(want.indices) > 1 else ""
    return first + ("Held; once it is released: " if want.held else "")


def _rehearsed_submission(asked: Asked, spec: JobSpec) -> RehearsalDocument:
    rehearsal = asked.queries.plan.rehearse(asked.caller, spec=spec)
    return rehearsal_document(rehearsal, _explained(rehearsal, spec, asked))


def _rehearsed_change(asked: Asked, change: Callable[[Site], Site]) -> RehearsalDocument:
    return rehearsal_document(asked.queries.plan.rehearse(asked.caller, change=change), None)


def _explained(rehearsal: Rehearsal, spec: JobSpec, asked: Asked) -> str | None:
    if rehearsal.wait is None:
        return None
    now = asked.door.clock()
    job = Job(id=rehearsal.job or JobId(0), spec=spec, submitted_at=now)
    why = rehearsal.wait.why
    return waiting(why, job, now, asked.queries.jobs.labels.found(wait_names(why))).text


async def _audit(asked: Asked) -> AuditPage:
    limit = asked.number("limit", 100, least=1, most=1_000)
    before = asked.instant("before")
    found = await asked.read(
        lambda: asked.queries.history.audit(asked.caller, before=before, limit=limit)
    )
    more = stamp(found[-1].at) if len(found) == limit else None
    return AuditPage(entries=tuple(map(audit_document, found)), next=more)


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/me",
        summary="Say who the server takes you for",
        answer=_me,
        gives=MeDocument,
    ),
    Operation(
        method="GET",
        path="/v1/users",
        summary="List the users who are known by name",
        answer=_users,
        gives=UserPage,
    ),
    Operation(
        method="GET",
        path="/v1/tokens",
        summary="List tokens: your own, or all of them for administrators",
        answer=_tokens,
        gives=TokenPage,
    ),
    Operation(
        method="POST",
        path="/v1/tokens",
        summary="Make a token; its secret is shown only this once",
        answer=_make_token,
        takes=TokenAsked,
        gives=TokenDocument,
        status=201,
    ),
    Operation(
        method="DELETE",
        path="/v1/tokens/{id}",
        summary="Make a key useless",
        answer=_revoke_token,
        gives=TokenDocument,
    ),
    Operation(
        method="GET",
        path="/v1/site",
        summary="Read the configuration",
        costly=True,
        answer=_site,
        media=YAML,
    ),
    Operation(
        method="PUT",
        path="/v1/site",
        summary="Apply a configuration, or say what it would change",
        needs=Role.QUEUE_ADMIN,
        answer=_apply,
        takes=SiteText,
        gives=SiteChange,
    ),
    Operation(
        method="POST",
        path="/v1/quotas",
        summary="Give a queue other numbers",
        needs=Role.QUEUE_ADMIN,
        answer=_set_quota,
        takes=QuotaAsked,
        gives=SiteChange,
        parameters=(Parameter(name="dry_run", text="only say what would change", kind="boolean"),),
    ),
    Operation(
        method="POST",
        path="/v1/rehearsals",
        summary="Ask what would become of jobs if something were different",
        answer=_rehearse,
        takes=RehearsalAsked,
        gives=RehearsalDocument,
    ),
    Operation(
        method="GET",
        path="/v1/audit",
        summary="Read who changed what, newest first",
        needs=Role.ADMIN,
        costly=True,
        answer=_audit,
        gives=AuditPage,
        parameters=(
            Parameter(name="before", text="only what was before then (RFC 3339)"),
            Parameter(name="limit", text="so many on a page", kind="integer"),
        ),
    ),
)
