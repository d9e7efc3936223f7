"""All kinds of training jobs."""

from muster.doors.kubernetes.controllers.kubeflow.framework import Framework
from muster.doors.kubernetes.controllers.kubeflow.mpi import MPI
from muster.doors.kubernetes.controllers.kubeflow.pytorch import PYTORCH
from muster.doors.kubernetes.controllers.kubeflow.tensorflow import TENSORFLOW

TRAINING_JOBS: tuple[Framework, ...] = (PYTORCH, TENSORFLOW, MPI)
