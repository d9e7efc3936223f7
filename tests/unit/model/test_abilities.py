import pytest

from muster.model.cluster import Abilities
from muster.model.gpu import Mig, MpsShare, Slice, TimeShare

NONE = Abilities(mig=False, mps=False, time_share=False)


@pytest.mark.parametrize(
    ("part", "able"),
    [
        (Mig(profile="1g.5gb"), Abilities(mig=True, mps=False, time_share=False)),
        (MpsShare(milli=500), Abilities(mig=False, mps=True, time_share=False)),
        (TimeShare(replicas=2), Abilities(mig=False, mps=False, time_share=True)),
    ],
)
def test_a_part_of_a_gpu_is_served_where_the_backend_can(part: Slice, able: Abilities) -> None:
    assert able.serves(part)
    assert not NONE.serves(part)


def test_a_whole_gpu_is_served_everywhere() -> None:
    assert NONE.serves(None)
