"""All kinds of training jobs."""

from muster.doors.kubernetes.controllers.kubeflow.framework import Framework
from muster.doors.kubernetes.controllers.kubeflow.pytorch import PYTORCH

TRAINING_JOBS: tuple[Framework, ...] = (PYTORCH,)
