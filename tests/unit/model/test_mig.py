from collections.abc import Collection, Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.gpu import MigInstance
from muster.model.mig import (
    GEOMETRIES,
    Geometry,
    MigProfile,
    free_starts,
    geometry,
    is_legal,
    mig_milli,
    mig_profile,
)
from muster.model.value import GpuModel

A30 = GpuModel("A30-24GB")
A100 = GpuModel("A100-40GB")
H200 = GpuModel("H200-141GB")

Layout = tuple[MigInstance, ...]

# Every way to fill an A100 with the profiles it was first sold with, as profile@start.
FULL_A100_LAYOUTS = """
    7@0
    4@0 3@4
    4@0 2@4 1@6
    4@0 1@4 1@5 1@6
    3@0 3@4
    3@0 2@4 1@6
    3@0 1@4 1@5 1@6
    2@0 2@2 3@4
    2@0 2@2 2@4 1@6
    2@0 2@2 1@4 1@5 1@6
    2@0 1@2 1@3 3@4
    2@0 1@2 1@3 2@4 1@6
    2@0 1@2 1@3 1@4 1@5 1@6
    1@0 1@1 2@2 3@4
    1@0 1@1 2@2 2@4 1@6
    1@0 1@1 2@2 1@4 1@5 1@6
    1@0 1@1 1@2 1@3 3@4
    1@0 1@1 1@2 1@3 2@4 1@6
    1@0 1@1 1@2 1@3 1@4 1@5 1@6
"""
FIRST_A100_PROFILES = {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb", 7: "7g.40gb"}


@st.composite
def legal_layouts(draw: st.DrawFn) -> tuple[Geometry, Layout]:
    """A model, and instances put one after another where there was room."""
    cut = draw(st.sampled_from(list(GEOMETRIES.values())))
    layout: Layout = ()
    for profile in draw(st.lists(st.sampled_from(cut.profiles), max_size=9)):
        starts = free_starts(cut.model, layout, profile.name)
        chosen = [draw(st.sampled_from(starts))] if starts else []
        layout += tuple(MigInstance(profile=profile.name, start=start) for start in chosen)
    return cut, layout


@st.composite
def any_layouts(draw: st.DrawFn) -> tuple[Geometry, list[MigInstance]]:
    """A model, and instances with real profiles at any start, legal or not."""
    cut = draw(st.sampled_from(list(GEOMETRIES.values())))
    instances = st.builds(
        MigInstance,
        profile=st.sampled_from([profile.name for profile in cut.profiles]),
        start=st.integers(min_value=-1, max_value=cut.memory_slices),
    )
    return cut, draw(st.lists(instances, max_size=4))


@pytest.mark.parametrize(
    ("model", "profiles"),
    [
        ("A30-24GB", "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb"),
        ("A100-40GB", "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        ("A100-80GB", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("H100-80GB", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("H100-94GB", "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),
        ("H200-141GB", "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
        ("B200-180GB", "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
    ],
)
def test_each_model_offers_its_profiles(model: str, profiles: str) -> None:
    cut = GEOMETRIES[GpuModel(model)]

    assert [profile.name for profile in cut.profiles] == profiles.split()


def test_the_table_has_no_other_models() -> None:
    assert len(GEOMETRIES) == 7
    assert geometry(GpuModel("L40S-48GB")) is None
    assert geometry(None) is None


@pytest.mark.parametrize(
    ("name", "slices", "at_most", "starts"),
    [
        ("1g.18gb", (1, 1), 7, (0, 1, 2, 3, 4, 5, 6)),
        ("1g.18gb+me", (1, 1), 1, (0, 1, 2, 3, 4, 5, 6)),
        ("1g.35gb", (1, 2), 4, (0, 2, 4, 6)),
        ("2g.35gb", (2, 2), 3, (0, 2, 4)),
        ("3g.71gb", (3, 4), 2, (0, 4)),
        ("4g.71gb", (4, 4), 1, (0,)),
        ("7g.141gb", (7, 8), 1, (0,)),
    ],
)
def test_an_h200_is_cut_as_a_real_one_says(
    name: str, slices: tuple[int, int], at_most: int, starts: tuple[int, ...]
) -> None:
    profile = found(H200, name)

    assert (profile.compute_slices, profile.memory_slices) == slices
    assert profile.at_most == at_most
    assert profile.starts == starts


@pytest.mark.parametrize("cut", GEOMETRIES.values(), ids=lambda cut: cut.model)
def test_names_slices_and_memory_tell_the_same_story(cut: Geometry) -> None:
    for profile in cut.profiles:
        compute_slices, _, memory_gb = profile.name.removesuffix("+me").partition("g.")

        assert profile.compute_slices == int(compute_slices)
        assert profile.media == profile.name.endswith("+me")
        # The name rounds the slice's share up, before the driver takes its own part of it.
        named_mib = int(memory_gb.removesuffix("gb")) * 1024
        assert 0.85 * named_mib < profile.memory_mib <= named_mib


@pytest.mark.parametrize("cut", GEOMETRIES.values(), ids=lambda cut: cut.model)
def test_as_many_instances_fit_as_the_profile_says(cut: Geometry) -> None:
    for profile in cut.profiles:
        assert len(filled(cut.model, profile.name)) == profile.at_most


def test_a_model_that_cannot_be_cut_has_no_profiles_and_no_room() -> None:
    assert mig_profile(GpuModel("L40S-48GB"), "1g.5gb") is None
    assert mig_profile(None, "1g.5gb") is None
    assert free_starts(GpuModel("L40S-48GB"), (), "1g.5gb") == ()
    assert not is_legal(None, a100("1@0"))


@pytest.mark.parametrize(
    ("model", "profile", "milli"),
    [
        (A100, "1g.5gb", 142),
        (A100, "1g.5gb+me", 142),
        (A100, "1g.10gb", 142),
        (A100, "2g.10gb", 285),
        (A100, "3g.20gb", 428),
        (A100, "4g.20gb", 571),
        (A100, "7g.40gb", 1000),
        (A30, "1g.6gb", 250),
        (A30, "2g.12gb", 500),
        (A30, "4g.24gb", 1000),
    ],
)
def test_a_profile_is_worth_its_share_of_the_compute_slices(
    model: GpuModel, profile: str, milli: int
) -> None:
    assert mig_milli(model, profile) == milli


def test_a_profile_the_model_lacks_is_worth_a_whole_gpu() -> None:
    assert mig_milli(A100, "1g.18gb") == 1000
    assert mig_milli(GpuModel("L40S-48GB"), "1g.5gb") == 1000


def test_before_the_model_is_known_the_name_tells_the_worth() -> None:
    assert mig_milli(None, "3g.20gb") == 428
    assert mig_milli(None, "7g.141gb") == 1000
    assert mig_milli(None, "half") == 1000
    assert mig_milli(None, "9g.5gb") == 1000


def test_an_empty_device_has_room_at_every_start() -> None:
    assert free_starts(A100, (), "2g.10gb") == (0, 2, 4)


def test_a_new_instance_overlaps_no_other() -> None:
    taken = a100("1@1 2@4")

    assert free_starts(A100, taken, "1g.5gb") == (0, 2, 3, 6)
    assert free_starts(A100, taken, "2g.10gb") == (2,)
    assert free_starts(A100, taken, "1g.10gb") == (2, 6)
    assert free_starts(A100, taken, "3g.20gb") == ()


def test_a_badly_placed_small_instance_keeps_a_large_one_out() -> None:
    assert free_starts(A100, a100("1@0"), "4g.20gb") == ()
    assert free_starts(A100, a100("1@6"), "4g.20gb") == (0,)


def test_only_one_instance_has_the_media_engines() -> None:
    taken = (MigInstance(profile="1g.6gb+me", start=0),)

    assert free_starts(A30, taken, "1g.6gb+me") == ()
    assert free_starts(A30, taken, "2g.12gb+me") == ()
    assert free_starts(A30, taken, "2g.12gb") == (2,)


def test_beside_an_instance_of_an_unknown_profile_nothing_is_offered() -> None:
    taken = (MigInstance(profile="1g.5gb+gfx", start=0),)

    assert free_starts(A100, taken, "1g.5gb") == ()
    assert not is_legal(A100, taken)


@pytest.mark.parametrize(
    "layout",
    ["1@7", "2@1", "2@6", "4@4", "3@0 2@2", "1@0 1@0", "7@0 1@6", "4@0 4@0", "3@0 3@4 1@6"],
)
def test_layouts_that_the_hardware_refuses_are_illegal(layout: str) -> None:
    assert not is_legal(A100, a100(layout))


def test_the_full_layouts_of_an_a100_are_the_known_nineteen() -> None:
    known = {frozenset(a100(line)) for line in FULL_A100_LAYOUTS.strip().splitlines()}

    assert len(known) == 19
    assert set(full_layouts(A100, FIRST_A100_PROFILES.values())) == known


def test_the_wide_1g_profile_makes_the_nineteen_seventy_eight() -> None:
    # Slices 0 to 3 hold 4g, 3g, or two pairs of {2g, wide 1g, 1g 1g}: 2 + 3 * 3 = 11 ways.
    # Slices 4 to 7 hold 3g, or one such pair and then {wide 1g, 1g}: 1 + 3 * 2 = 7 ways.
    # And there is 7g alone.
    profiles = [*FIRST_A100_PROFILES.values(), "1g.10gb"]

    assert len(full_layouts(A100, profiles)) == 11 * 7 + 1


@given(legal_layouts())
def test_what_is_offered_is_legal(world: tuple[Geometry, Layout]) -> None:
    cut, layout = world

    assert is_legal(cut.model, layout)


@given(legal_layouts())
def test_what_is_not_offered_is_illegal(world: tuple[Geometry, Layout]) -> None:
    cut, layout = world

    for profile, start in product(cut.profiles, range(cut.memory_slices)):
        more = (*layout, MigInstance(profile=profile.name, start=start))
        assert is_legal(cut.model, more) == (start in free_starts(cut.model, layout, profile.name))


@given(legal_layouts())
def test_a_legal_layout_gives_no_slice_twice(world: tuple[Geometry, Layout]) -> None:
    cut, layout = world
    profiles = [(found(cut.model, one.profile), one.start) for one in layout]

    memory = [start + at for profile, start in profiles for at in range(profile.memory_slices)]

    assert len(memory) == len(set(memory))
    assert set(memory) <= set(range(cut.memory_slices))
    assert sum(profile.compute_slices for profile, _ in profiles) <= cut.compute_slices
    assert sum(profile.media for profile, _ in profiles) <= 1


@given(any_layouts(), st.data())
def test_the_order_of_instances_does_not_matter(
    world: tuple[Geometry, list[MigInstance]], data: st.DataObject
) -> None:
    cut, layout = world

    shuffled = data.draw(st.permutations(layout))

    assert is_legal(cut.model, shuffled) == is_legal(cut.model, layout)


@given(legal_layouts(), st.data())
def test_a_legal_layout_stays_legal_without_one_instance(
    world: tuple[Geometry, Layout], data: st.DataObject
) -> None:
    cut, layout = world
    gone = data.draw(st.integers(min_value=0, max_value=len(layout)))

    assert is_legal(cut.model, layout[:gone] + layout[gone + 1 :])


def a100(text: str) -> Layout:
    """Instances on an A100, each written as compute slices @ start."""
    pairs = [part.split("@") for part in text.split()]
    return tuple(
        MigInstance(profile=FIRST_A100_PROFILES[int(slices)], start=int(start))
        for slices, start in pairs
    )


def full_layouts(model: GpuModel, profiles: Collection[str]) -> set[frozenset[MigInstance]]:
    """Every layout of these profiles that leaves no room for one more of them."""
    full: set[frozenset[MigInstance]] = set()
    seen = {frozenset[MigInstance]()}
    for _ in range(8):
        larger = {each: set(one_more(model, each, profiles)) for each in seen}
        full |= {each for each in seen if not larger[each]}
        seen = {each for grown in larger.values() for each in grown}
    assert not seen
    return full


def one_more(
    model: GpuModel, layout: frozenset[MigInstance], profiles: Collection[str]
) -> Iterator[frozenset[MigInstance]]:
    for profile in profiles:
        for start in free_starts(model, layout, profile):
            yield layout | {MigInstance(profile=profile, start=start)}


def filled(model: GpuModel, profile: str) -> Layout:
    """Instances of one profile, from the left, until no more fit."""
    layout: Layout = ()
    while starts := free_starts(model, layout, profile):
        layout += (MigInstance(profile=profile, start=starts[0]),)
    return layout


def found(model: GpuModel, name: str) -> MigProfile:
    profile = mig_profile(model, name)
    assert profile is not None
    return profile
