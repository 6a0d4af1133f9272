"""The chart by Helm's own code and Kubernetes' own schemas: Helm 4 is a library on PyPI, and so are the schemas.

It also says that the small interpreter by which `make test` renders the chart comes to the same objects.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.environments import environment
from tests.unit.deploy.test_deploy import DEPLOY, VALUES, objects

NEEDS = ("helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0", "pyyaml")
KUBERNETES = ("1.27", "1.31", "1.37")
SCRIPT = """
import json, sys
import helm_python.chart as helm, kubernetes_validate, yaml
folder, values, versions = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3].split()
linted = [helm.lint(folder, values, strict=True, kube_version=f"v{version}.0") for version in versions]
made = helm.Chart.load(folder).render(values, name="gate", namespace="tools", revision=3, is_install=True)
found = [one for text in made.values() for one in yaml.safe_load_all(text) if one]
for one in found:
    for version in versions:
        kubernetes_validate.validate(one, version, strict=True)
print(json.dumps({"lint": linted, "objects": found}, default=str))
"""


def by_helm(values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    python = environment(*NEEDS)
    command = [str(python), "-c", SCRIPT, str(DEPLOY / "helm" / "extgate"), json.dumps(values), " ".join(KUBERNETES)]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(python).parent)


def read(found: dict[str, Any]) -> dict[str, Any]:
    """An object with the files that it holds read, and without their checksum: both may be laid out in two ways."""
    if found["kind"] == "ConfigMap":
        return found | {"data": {name: yaml.safe_load(text) for name, text in found["data"].items()}}
    if found["kind"] == "Deployment":
        assert len(found["spec"]["template"]["metadata"]["annotations"].pop("checksum/config")) == 64
    return found


@pytest.mark.e2e
@pytest.mark.timeout(600)
@pytest.mark.parametrize("values", [VALUES, {"replicaCount": 1}], ids=["all", "one replica"])
def test_helm_lints_and_renders_the_chart_and_kubernetes_takes_its_objects(values: dict[str, Any]) -> None:
    done = by_helm(values)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    for report in found["lint"]:
        assert report["errors"] == []
        assert [m["error"] for m in report["messages"] if m["severity"] > 1] == []
    assert {one["kind"]: read(one) for one in found["objects"]} == {k: read(one) for k, one in objects(values).items()}


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_helm_refuses_several_replicas_that_share_nothing() -> None:
    done = by_helm({})
    assert done.returncode != 0
    assert "several replicas need redis.secretName" in done.stderr
