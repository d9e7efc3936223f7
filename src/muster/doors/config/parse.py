"""Reads a configuration file into the `Site` that it describes, or says all that is wrong."""

from muster.doors.config.checks import mistakes
from muster.doors.config.faults import BadSiteError, Findings, TextPosition
from muster.doors.config.of_site import SITE
from muster.doors.config.read import Reader
from muster.doors.config.tree import Listed, Mapped, Scalar, Tree, tree_of
from muster.model.site import Site


def site_from(text: str) -> Site:
    """The site that the file describes; raises BadSiteError with every problem in it."""
    findings = Findings()
    tree = tree_of(text, findings)
    if tree is None or _is_empty(tree):
        raise _empty(findings)
    site = Reader(findings).value(SITE, tree, ())
    if isinstance(site, Site):
        _compare(site, findings)
    if findings.faults or not isinstance(site, Site):
        raise BadSiteError(
            tuple(
                sorted(
                    findings.faults,
                    key=lambda fault: (fault.line, fault.column, fault.keys, fault.text),
                )
            )
        )
    return site


def _is_empty(tree: Tree) -> bool:
    match tree:
        case Mapped(entries=entries):
            return not entries
        case Scalar(is_nothing=is_nothing):
            return is_nothing
        case Listed():
            return False


def _empty(findings: Findings) -> BadSiteError:
    if not findings.faults:
        text = "the file is empty; applied, it would remove every queue, class and pool"
        findings.wrong(TextPosition(line=1, column=1), (), text)
    return BadSiteError(tuple(findings.faults))


def _compare(site: Site, findings: Findings) -> None:
    """Whether what is named exists; where something could not be read, only what was read."""
    known = [mistake for mistake in mistakes(site) if findings.is_read(mistake.keys)]
    for mistake in known:
        findings.wrong(findings.spot_of(mistake.keys), mistake.keys, mistake.text)
