"""Beside dask's operator, on any Kubernetes: a cluster that it calls pending last of all runs.

One of its handlers makes a cluster's Service and writes `Pending` when it is through; another sees
the Service and writes `Running`. On a busy machine the second may be quicker, and then nothing
ever writes `Running` again.
"""

import kopf


@kopf.on.field("daskclusters.kubernetes.dask.org", field="status.phase", new="Pending")
def runs(patch: kopf.Patch, **_: object) -> None:
    patch.status["phase"] = "Running"
