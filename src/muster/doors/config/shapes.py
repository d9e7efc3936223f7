"""What a key of the file can hold, and what keys and sections are."""

from collections.abc import Callable

from muster.doors.config.kinds import NAME, ValueType
from muster.model.value import Value


class Metered(Value):
    """An amount, in the unit of the line's own `meter`."""


class Many(Value):
    """A list of words. split: the list that one text alone stands for, where that is taken."""

    each: ValueType
    split: Callable[[str], tuple[str, ...]] | None = None


class Pairs(Value):
    """A mapping from names to words. optional: a name may stand alone, and has the value None."""

    each: ValueType
    optional: bool = False


class Inside(Value):
    """A mapping that sets fields of a value inside this one."""

    section: "Section"


class Aside(Value):
    """A mapping that sets fields of this very value: keys that people look for together."""

    section: "Section"


class NamedMapping(Value):
    """A mapping from names to values, each of which knows its name."""

    section: "Section"
    name: ValueType = NAME


class Branches(Value):
    """Queues by name, and below each the same again."""


class ValueList(Value):
    """A list of values."""

    section: "Section"


Shape = ValueType | Metered | Many | Pairs | Inside | Aside | NamedMapping | Branches | ValueList


class Key(Value):
    """One key. `field` is where it goes in the model, the same name by default.

    optional: `none` may be written, and means what the model's None means.
    other_names: what people write for it elsewhere, so that they can be led here.
    """

    name: str
    shape: Shape
    meaning: str
    example: str = ""
    field: str = ""
    optional: bool = False
    required: bool = False
    other_names: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return self.field or self.name


class Section(Value):
    """The keys that belong together, and the values that they make.

    blank: such a value with nothing set, which holds the defaults; None where there are none.
    named: the field that holds the name under which the value stands.
    """

    title: str
    noun: str
    makes: tuple[type[Value], ...]
    keys: tuple[Key, ...]
    blank: Value | None = None
    named: str = ""

    def key(self, name: str) -> Key | None:
        return next((each for each in self.keys if each.name == name), None)
