"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, and still knows."""

from collections.abc import Sequence

from muster.doors.kubernetes.controllers.changes import Create, Delete, Draft
from muster.doors.kubernetes.controllers.cluster import Cluster
from muster.doors.kubernetes.controllers.names import template_hash
from muster.doors.kubernetes.controllers.owning import owner_reference
from muster.doors.kubernetes.objects.kinds import CONTROLLER_REVISION
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    copied,
    labels_of,
    name_of,
    namespace_of,
    part,
    uid_of,
)

LONGEST_NAME = 223
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class History:
    """The revisions of one owner, oldest first, and the one that its template is now.

    label: under which a revision carries its hash.
    """

    def __init__(self, draft: Draft, cluster: Cluster, label: str) -> None:
        self._draft = draft
        self._cluster = cluster
        self._label = label
        owner = draft.about
        found = cluster.controlled(CONTROLLER_REVISION, namespace_of(owner), uid_of(owner))
        self.revisions = sorted(found, key=lambda each: (each["revision"], name_of(each)))
        self.current = self._current()

    def named(self, name: str | None) -> JsonObject | None:
        """The revision with a name."""
        return next((each for each in self.revisions if name_of(each) == name), None)

    def hash_of(self, revision: JsonObject) -> str:
        return labels_of(revision).get(self._label, "")

    def clean_up(self, used: set[str], limit: int | None) -> None:
        """Forget the oldest revisions that nobody uses, beyond so many."""
        unused = [each for each in self.revisions if name_of(each) not in used]
        for each in unused[: max(0, len(unused) - (10 if limit is None else limit))]:
            self._draft.remove(Delete(object=each))

    def _current(self) -> JsonObject:
        """The revision of the present template: found, moved to the end, or made."""
        content = patch_of(self._draft.about)
        last = self.revisions[-1]["revision"] if self.revisions else 0
        for each in reversed(self.revisions):
            if each["data"] != content:
                continue
            if each["revision"] == last:
                return each
            again = {**each, "revision": last + 1}
            self._draft.update(again)
            self.revisions = [one for one in self.revisions if one is not each] + [again]
            return again
        made = self._new(content, last + 1)
        self._draft.make(Create(object=made))
        self.revisions.append(made)
        return made

    def _new(self, content: JsonObject, number: int) -> JsonObject:
        owner = self._draft.about
        collisions = 0
        while True:
            hashed = template_hash(content, collisions=collisions)
            name = f"{name_of(owner)[:LONGEST_NAME]}-{hashed}"
            if self._cluster.get(CONTROLLER_REVISION, namespace_of(owner), name) is None:
                break
            collisions += 1
        template = part(owner, "spec", "template")
        about: JsonObject = {
            "name": name,
            "namespace": namespace_of(owner),
            "labels": {**labels_of(template), self._label: hashed},
            "ownerReferences": [owner_reference(owner)],
        }
        notes = {key: value for key, value in annotations_of(owner).items() if key != LAST_APPLIED}
        if notes:
            about["annotations"] = notes
        return {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": about,
            "data": content,
            "revision": number,
        }


def patch_of(owner: JsonObject) -> JsonObject:
    """The template as a patch, which is how `kubectl rollout undo` puts it back."""
    template = copied(part(owner, "spec", "template"))
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_of(revision: JsonObject) -> JsonObject:
    """The template that a revision keeps."""
    template = copied(part(revision, "data", "spec", "template"))
    template.pop("$patch", None)
    return template


def used_revisions(pods: Sequence[JsonObject], label: str) -> set[str]:
    """What pods say of the revision they are of."""
    return {labels_of(each).get(label, "") for each in pods}
