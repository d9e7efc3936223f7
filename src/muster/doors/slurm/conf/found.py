"""What an import found: rules, nodes, and what has no counterpart here. Pure."""

from collections.abc import Callable, Mapping

from muster.doors.slurm.conf.association_file import FlatFileEntry
from muster.doors.slurm.conf.lines import ConfLine
from muster.model.errors import MusterError
from muster.model.rack import Rack
from muster.model.site import Site
from muster.model.value import GpuModel, Value


class BadSlurmConfError(MusterError):
    """A configuration file of Slurm cannot be read; the message says where and why."""


class Note(Value):
    """Something that could not be taken over as it is, and what became of it."""

    about: str
    text: str


Notes = Callable[[str, str], None]
"""`notes(about, text)`: write down what has no counterpart."""


class Files(Value):
    """Everything that is imported at once, read.

    classes: rows of `sacctmgr -P show qos`. models: how the site's GPU types are called here.
    """

    conf: tuple[ConfLine, ...] = ()
    gres: tuple[ConfLine, ...] = ()
    topology: tuple[ConfLine, ...] = ()
    accounts: tuple[FlatFileEntry, ...] = ()
    classes: tuple[Mapping[str, str], ...] = ()
    models: Mapping[str, GpuModel] = {}


class Imported(Value):
    """The rules and nodes that do what the files said, and what they could not be made to do."""

    site: Site
    racks: tuple[Rack, ...]
    notes: tuple[Note, ...]
