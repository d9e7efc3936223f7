from muster.doors.kubernetes.objects.kinds import JOB, KINDS, POD, kind_of


def test_an_object_is_known_by_what_it_says_of_itself() -> None:
    assert kind_of({"apiVersion": "batch/v1", "kind": "Job"}) is JOB
    assert kind_of({"apiVersion": "v1", "kind": "Pod"}) is POD
    assert kind_of({"apiVersion": "v9", "kind": "Pod"}) is None


def test_every_row_is_named_in_the_table_and_no_name_stands_for_two() -> None:
    from muster.doors.kubernetes.objects import kinds  # noqa: PLC0415

    rows = [each for each in vars(kinds).values() if isinstance(each, kinds.Kind)]
    names = [(each.group, name) for each in KINDS for name in (each.plural, *each.short_names)]

    assert set(rows) == set(KINDS)
    assert len(names) == len(set(names))
