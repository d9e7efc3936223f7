"""What the objects of an attempt are called, where they are, and in what image they run."""

from muster.backends.kubernetes.manifest import Manner, name_of
from muster.backends.kubernetes.pods import Key
from muster.model.value import QueuePath, replace

KEY = Key(site="a1", job=7, attempt=2, seal="mine")
MANNER = Manner(
    namespace="jobs",
    image="plain",
    namespaces={QueuePath("acme/nlp"): "nlp"},
    images={QueuePath("acme"): "torch"},
)


def test_a_name_says_whose_it_is_and_cannot_be_told_without_the_secret() -> None:
    name = name_of(KEY)

    assert name.startswith("muster-a1-7-2-")
    assert name == name_of(KEY)
    assert name != name_of(replace(KEY, seal="theirs"))


def test_the_names_of_two_attempts_have_nothing_in_common_at_their_ends() -> None:
    assert name_of(KEY)[-12:] != name_of(replace(KEY, attempt=3))[-12:]


def test_what_is_said_of_a_queue_holds_for_those_below_it() -> None:
    for queue, found in {
        "acme": ("jobs", "torch"),
        "acme/nlp": ("nlp", "torch"),
        "acme/nlp/eval": ("nlp", "torch"),
        "acme/nlpx": ("jobs", "torch"),
        "lab": ("jobs", "plain"),
    }.items():
        path = QueuePath(queue)
        assert (MANNER.namespace_of(path), MANNER.image_of(path)) == found
