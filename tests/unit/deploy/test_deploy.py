"""What stands in `deploy/`: the chart's objects, the unit, the container file; and the settings that its files hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from extgate.cli.serve import command
from extgate.gateway.settings import read_gateway
from extgate.homes import find_homes
from extgate.workspace import Workspace
from tests.helm_template import Chart

DEPLOY = Path(__file__).parents[3] / "deploy"
CHART = Chart(DEPLOY / "helm" / "extgate")
VALUES: dict[str, Any] = {
    "gateway": {
        "url": "https://gate.example.com",
        "settings": {
            "oauth": [{"issuer": "https://id.example.com", "agents": [{"agents": ["research"], "scopes": ["mcp"]}]}],
            "limits": {"calls": [{"items": "github", "rate": "60/minute"}]},
        },
    },
    "agents": {"research": "id: research\nmcp: {disabled: ['github/delete_*']}\n"},
    "mcpServers": {
        "github": {"url": "https://mcp.example.com", "headers": {"Authorization": "${file:/secrets/github}"}}
    },
    "redis": {"secretName": "gate-redis"},
    "secretName": "gate-secrets",
    "operatorsKey": "operators.json",
    "ingress": {"enabled": True, "className": "nginx", "tlsSecretName": "tls"},
    "tolerations": [{"key": "x", "operator": "Exists"}],
}


def objects(values: dict[str, Any] | None = None, **more: Any) -> dict[str, dict[str, Any]]:
    found = CHART.objects(VALUES if values is None else values, **more)
    return {one["kind"]: one for one in found}


def test_the_chart_comes_to_its_objects_under_the_release_s_name() -> None:
    found = objects()
    assert set(found) == {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "Ingress", "NetworkPolicy"}
    assert all(one["apiVersion"] and one["metadata"]["name"].startswith("gate") for one in found.values())
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        found["Deployment"]["spec"]["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()


def test_the_chart_s_workspace_is_one_that_the_gateway_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = objects()
    volumes = found["Deployment"]["spec"]["template"]["spec"]["volumes"]
    (items,) = [volume["configMap"]["items"] for volume in volumes if volume["name"] == "workspace"]
    assert {item["key"] for item in items} == set(found["ConfigMap"]["data"])
    for item in items:
        path = tmp_path / item["path"]
        path.parent.mkdir(exist_ok=True)
        path.write_text(found["ConfigMap"]["data"][item["key"]])
    monkeypatch.setenv("REDIS_URL", "redis://:p@redis:6379/0")
    monkeypatch.setenv("POD_IP", "10.1.2.3")
    settings = read_gateway(find_homes(tmp_path))
    assert settings.shared is not None
    assert (settings.shared.address, settings.shared.revision) == ("http://10.1.2.3:8470", 3)
    assert settings.callers.issuers[0].grants[0].scopes == ("mcp",)
    assert str(settings.callers.operators) == "/secrets/operators.json"
    assert settings.limits.quotas[0].rate == 1.0
    (agent,) = Workspace.open(tmp_path).agents
    assert (agent.id, agent.errors) == ("research", ())
    assert json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["github"]["url"] == "https://mcp.example.com"


def test_pods_are_given_nothing_that_they_do_not_need() -> None:
    spec = objects()["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounts = {mount["name"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounts == {"workspace": True, "state": False, "tmp": False, "secrets": True}
    (secret,) = [volume["secret"] for volume in spec["volumes"] if volume["name"] == "secrets"]
    assert secret["defaultMode"] == 0o440
    assert {probe: container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("readiness", "liveness")} == {
        "readiness": "/readyz",
        "liveness": "/healthz",
    }
    assert spec["terminationGracePeriodSeconds"] > 10 + CHART.values["preStopSeconds"]


def test_several_replicas_without_redis_are_refused_and_one_needs_none() -> None:
    with pytest.raises(ValueError, match=r"redis\.secretName"):
        objects({})
    found = objects({"replicaCount": 1})
    assert "shared" not in yaml.safe_load(found["ConfigMap"]["data"]["extgate.yaml"])["gateway"]
    assert "Ingress" not in found


def test_an_edit_of_the_values_rolls_the_pods() -> None:
    def sums(values: dict[str, Any]) -> str:
        template = objects(values)["Deployment"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    assert sums(VALUES) == sums(json.loads(json.dumps(VALUES)))
    assert sums(VALUES) != sums(VALUES | {"agents": {"research": "id: research\n"}})


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / "extgate.service").read_text()
    program = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)
    assert program
    unit = tmp_path / "extgate.service"
    unit.write_text(text.replace(f"ExecStart={program[1]}", "ExecStart=/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if "extgate" in line] == []


def test_commands_of_the_unit_and_the_container_file_are_ones_that_there_are() -> None:
    known = {option for parameter in command.params for option in parameter.opts}
    unit, container = (DEPLOY / "systemd" / "extgate.service").read_text(), (DEPLOY / "Containerfile").read_text()
    for text in (unit, container):
        (line,) = re.findall(r"^(?:ExecStart|ENTRYPOINT).*serve(.*)$", text, re.MULTILINE)
        assert set(re.findall(r"--[a-z]+", line)) <= known
    extras = re.search(r"'\.\[([a-z,]+)\]'", container)
    assert extras
    project = (DEPLOY.parent / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in project for extra in extras[1].split(","))
    assert "USER 10001" in container.rpartition("FROM")[2]
