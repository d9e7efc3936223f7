"""Slurm's flat file says the same after it was read and written again."""

from hypothesis import assume, given

from muster.doors.config.checks import mistakes
from muster.doors.slurm.accounting.associations import known_users
from muster.doors.slurm.managing.edit import EditFacts
from muster.doors.slurm.managing.flatfile import HEAD, dumped
from muster.doors.slurm.managing.loading import loading
from muster.model.site import Site
from muster.model.value import GpuModel, replace
from properties.test_site_file import sites

AROUND = EditFacts(
    cluster="lab",
    nodes={},
    models=(GpuModel("A100-40GB"), GpuModel("RTX 6000 Ada")),
    jobs=lambda _: (),
)


@given(sites())
def test_a_dump_that_is_loaded_elsewhere_is_dumped_the_same(site: Site) -> None:
    assume(is_sayable(site))
    text = dumped(site, AROUND.cluster, AROUND.nodes)
    empty = Site(classes=site.classes, default_queue=site.default_queue, everyone=site.everyone)

    loaded = loading(HEAD + "\n".join(text), AROUND, clean=False)(empty).site

    assert dumped(loaded, AROUND.cluster, AROUND.nodes) == text


@given(sites())
def test_a_dump_that_is_loaded_again_takes_nothing_away(site: Site) -> None:
    assume(is_sayable(site))
    text = dumped(site, AROUND.cluster, AROUND.nodes)

    again = loading("\n".join(text), AROUND, clean=True)(site).site

    assert dumped(again, AROUND.cluster, AROUND.nodes) == text
    assert again.queues.keys() == site.queues.keys()
    assert set(known_users(again)) == set(known_users(site))
    assert replace(again, queues={}, users={}) == replace(site, queues={}, users={})


def is_sayable(site: Site) -> bool:
    """Has it only names that Slurm can say, and no account that has the name of the whole?"""
    models = {line.scope.model for queue in site.queues.values() for line in queue.quotas}
    parts = {part for path in site.queues for part in path.split("/")}
    small = {path.lower() for path in site.queues}
    return (
        "#1: a, b" not in models
        and "root" not in parts | set(known_users(site))
        and len(small) == len(site.queues)
        and not list(mistakes(site))
    )
