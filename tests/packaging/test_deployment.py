"""The container's recipe, compose.yaml, kubernetes.yaml and the checks' set-up, read as data: no engine or cluster is needed."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
import yaml

from service import __version__
from service.api.app import create_app
from service.outbound.addresses import METADATA as METADATA_SERVICES
from service.outbound.addresses import PRIVATE
from service.settings import Settings, list_settings
from service.store.tables import METADATA
from tests.tables import read_yaml

FILES = ("deploy/compose.yaml", "deploy/kubernetes.yaml")
SETTINGS = {name for name, _, _ in list_settings()}
SECRETS = {"CALLGRADE_DATABASE_URL", "CALLGRADE_CACHE_URL", "CALLGRADE_JUDGE_API_KEY", "CALLGRADE_WEBHOOK_SECRET"}


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    return read_yaml(root / "deploy/compose.yaml")


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    return compose["services"]


@pytest.fixture(scope="module")
def manifests(root: Path) -> dict[tuple[str, str], Any]:
    """Every manifest by kind and name."""
    documents = list(yaml.safe_load_all((root / "deploy/kubernetes.yaml").read_text("utf-8")))
    found = {(one["kind"], one["metadata"]["name"]): one for one in documents}
    assert len(found) == len(documents)
    return found


@pytest.fixture(scope="module")
def suggested(root: Path) -> Any:
    """The manifest that stands in comments."""
    lines = (root / "deploy/kubernetes.yaml").read_text("utf-8").partition("\n# ---\n")[2].splitlines()
    return yaml.safe_load("\n".join(line.removeprefix("#").removeprefix(" ") for line in lines))


def pods(manifests: dict[tuple[str, str], Any]) -> dict[str, Any]:
    """What a pod of each Deployment is."""
    return {name: one["spec"]["template"]["spec"] for (kind, name), one in manifests.items() if kind == "Deployment"}


def container(pod: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod["containers"]
    return only


# Of both.


@pytest.mark.parametrize("file", FILES)
def test_settings_are_those_of_the_service(root: Path, file: str) -> None:
    assert set(re.findall(r"CALLGRADE_\w+", (root / file).read_text("utf-8"))) <= SETTINGS


@pytest.mark.parametrize("file", FILES)
def test_images_are_pinned_and_ours_is_this_version(root: Path, file: str) -> None:
    images = re.findall(r"^\s*image: (\S+)", (root / file).read_text("utf-8"), re.MULTILINE)
    assert f"callgrade:{__version__}" in images
    assert all(re.fullmatch(r"[\w./-]+:\d[\w.]*(@sha256:[0-9a-f]{64})?", image) for image in images)
    assert {image for image in images if image.startswith("callgrade")} == {f"callgrade:{__version__}"}


@pytest.mark.parametrize("file", FILES)
def test_no_secret_stands_in_it(root: Path, file: str) -> None:
    text = (root / file).read_text("utf-8")
    found = re.findall(r"^\s*(\w*(?:PASSWORD|SECRET|API_KEY|_URL)\w*): ([^#\n]*)", text, re.MULTILINE)
    found += [("redis-server", value) for value in re.findall(r"- --requirepass\n\s*- (.*)", text)]
    assert found
    for name, value in found:
        harmless = value.strip() in ('""', "") or "CHANGE-ME" in value
        assert harmless or re.search(r"\$\{\w+:[?-]", value), name
    assert not re.search(r"\$\{\w*PASSWORD(?!:\?)", text)  # one that is not set is an error, never empty


# Compose.


def test_every_service_is_confined(services: dict[str, Any]) -> None:
    confined = {
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "restart": "unless-stopped",
    }
    for name, service in services.items():
        assert {key: service[key] for key in confined} == confined, name
        assert not service["user"].startswith(("0", "root")), name
        assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"]), name


def test_only_the_service_is_reached_and_only_from_this_machine(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["serve"]
    assert all(port.startswith("127.0.0.1:") for port in services["serve"]["ports"])
    assert compose["networks"]["stores"] == {"internal": True}
    assert {name for name, one in services.items() if one["networks"] == ["stores"]} == {"postgres", "redis"}


def test_the_settings_can_be_read(services: dict[str, Any]) -> None:
    given = {"POSTGRES_PASSWORD": "a1", "REDIS_PASSWORD": "b2"}
    environment = services["serve"]["environment"]
    filled = {
        name: re.sub(r"\$\{(\w+):[^}]*\}", lambda found: given.get(found[1], ""), value)
        for name, value in environment.items()
    }
    settings = Settings.from_env(filled)
    assert settings.database_url == "postgresql+psycopg://callgrade:a1@postgres:5432/callgrade"
    assert settings.cache_url == "redis://:b2@redis:6379/0"
    assert (settings.worker, settings.first_key) == (False, False)
    assert environment == services["worker"]["environment"]


# Kubernetes.


def test_selectors_find_the_pods_they_mean(manifests: dict[tuple[str, str], Any]) -> None:
    for kind, name in (("Deployment", "callgrade-serve"), ("Deployment", "callgrade-worker")):
        spec = manifests[kind, name]["spec"]
        labels = spec["template"]["metadata"]["labels"]
        (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
        assert spec["selector"]["matchLabels"] == labels == spread["labelSelector"]["matchLabels"]
        assert manifests["PodDisruptionBudget", name]["spec"]["selector"]["matchLabels"] == labels
        assert policy(manifests, "callgrade")["podSelector"]["matchLabels"].items() <= labels.items()
    served = manifests["Deployment", "callgrade-serve"]["spec"]["template"]["metadata"]["labels"]
    assert manifests["Service", "callgrade"]["spec"]["selector"] == served
    assert policy(manifests, "callgrade-serve")["podSelector"]["matchLabels"] == served


def policy(manifests: dict[tuple[str, str], Any], name: str) -> dict[str, Any]:
    return manifests["NetworkPolicy", name]["spec"]


def goes(manifests: dict[tuple[str, str], Any], address: str, port: int) -> bool:
    """Whether a pod may connect there."""

    def holds(block: dict[str, Any]) -> bool:
        left_out = [one for one in block.get("except", []) if ip_address(address) in ip_network(one)]
        return ip_address(address) in ip_network(block["cidr"]) and not left_out

    for rule in policy(manifests, "callgrade")["egress"]:
        blocks = [peer["ipBlock"] for peer in rule.get("to", [])]
        if {"protocol": "TCP", "port": port} in rule["ports"] and (not blocks or any(map(holds, blocks))):
            return True
    return False


def test_pods_reach_the_public_network_and_the_stores_and_nothing_else(manifests: dict[tuple[str, str], Any]) -> None:
    for address in ("93.184.216.34", "2606:2800::1"):
        assert [goes(manifests, address, port) for port in (443, 80, 22, 8000)] == [True, False, False, False]
    for block in map(ip_network, (*METADATA_SERVICES, *PRIVATE)):
        assert not any(goes(manifests, str(one), port) for one in (block[0], block[-1]) for port in (80, 443)), block
    ports = {urlsplit(url).port for url in manifests["Secret", "callgrade"]["stringData"].values() if "://" in url}
    assert all(goes(manifests, "10.0.0.7", port) for port in (*ports, 53) if port)
    assert ports == {5432, 6379}


def test_only_the_service_is_reached_and_only_at_its_port(manifests: dict[tuple[str, str], Any]) -> None:
    assert set(policy(manifests, "callgrade")["policyTypes"]) == {"Ingress", "Egress"}
    assert "ingress" not in policy(manifests, "callgrade")
    (rule,) = policy(manifests, "callgrade-serve")["ingress"]
    (port,) = container(pods(manifests)["callgrade-serve"])["ports"]
    assert rule["ports"] == [{"protocol": "TCP", "port": port["name"]}]


def test_probes_ask_what_the_application_answers(manifests: dict[tuple[str, str], Any]) -> None:
    serve = container(pods(manifests)["callgrade-serve"])
    ports = {port["name"]: port["containerPort"] for port in serve["ports"]}
    asked = [serve[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert [one["path"] for one in asked] == ["/livez", "/livez", "/readyz"]
    assert {one["path"] for one in asked} <= {getattr(route, "path", "") for route in create_app().routes}
    assert {one["port"] for one in asked} <= set(ports)
    assert serve["args"][serve["args"].index("--port") + 1] == str(ports["http"])
    (port,) = manifests["Service", "callgrade"]["spec"]["ports"]
    assert port["targetPort"] in ports


def test_pods_are_confined(manifests: dict[tuple[str, str], Any]) -> None:
    confined = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    for pod in pods(manifests).values():
        one = container(pod)
        assert one["securityContext"].items() >= confined.items()
        assert set(one["resources"]) == {"requests", "limits"}
        assert pod["automountServiceAccountToken"] is False
        assert {mount["name"] for mount in one["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_settings_and_secrets_can_be_read(manifests: dict[tuple[str, str], Any]) -> None:
    plain = manifests["ConfigMap", "callgrade"]["data"]
    secret = manifests["Secret", "callgrade"]["stringData"]
    assert set(secret) == SECRETS
    assert not set(plain) & SECRETS
    settings = Settings.from_env(plain | secret)
    assert (settings.worker, settings.first_key) == (False, False)
    assert (settings.webhook_secret, settings.judge_api_key) == ("", "")
    for pod in pods(manifests).values():
        names = [reference["name"] for source in container(pod)["envFrom"] for reference in source.values()]
        assert names == ["callgrade", "callgrade"]


def test_the_query_that_workers_are_scaled_by_counts_open_chunks(
    suggested: Any, manifests: dict[tuple[str, str], Any], tmp_path: Path
) -> None:
    (trigger,) = suggested["spec"]["triggers"]
    assert ("Deployment", suggested["spec"]["scaleTargetRef"]["name"]) in manifests
    assert trigger["metadata"]["connectionFromEnv"] in SETTINGS
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'store.db'}")
    METADATA.create_all(engine)
    engine.dispose()
    batches = [{"id": "runs", "status": "in_progress"}, {"id": "waits", "status": "paused_budget"}]
    states = [("runs", 0, "ready"), ("runs", 1, "ready"), ("runs", 2, "done"), ("waits", 0, "ready")]
    chunks = [{"batch": batch, "first": first, "state": state} for batch, first, state in states]
    with sqlite3.connect(tmp_path / "store.db") as connection:
        for table, rows in (("callgrade_batches", batches), ("callgrade_chunks", chunks)):
            columns = [column.name for column in METADATA.tables[table].columns]
            marks = ", ".join(f":{name}" for name in columns)
            whole = [dict.fromkeys(columns, 0) | row for row in rows]
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", whole)  # noqa: S608
        (found,) = connection.execute(trigger["metadata"]["query"]).fetchone()
    connection.close()
    assert found == 2


@pytest.fixture(scope="module")
def recipe(root: Path) -> list[tuple[str, str]]:
    """(instruction, rest) of every instruction, with the defaults of the ARGs before the first FROM filled in."""
    text = re.sub(r"^\s*#.*\n", "", (root / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    found = [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]
    values = dict(rest.split("=", 1) for word, rest in found if word == "ARG")
    return [(word, re.sub(r"\$\{(\w+)\}", lambda name: values.get(name[1], name[0]), rest)) for word, rest in found]


def rests(recipe: list[tuple[str, str]], word: str) -> list[str]:
    return [rest for found, rest in recipe if found == word]


def test_stages_start_from_a_pinned_image(recipe: list[tuple[str, str]]) -> None:
    stages = [rest.split() for rest in rests(recipe, "FROM")]
    assert [stage[1:] for stage in stages] == [["AS", "build"], ["AS", "run"]]
    assert all(re.fullmatch(r"python:3\.\d+-slim(@sha256:[0-9a-f]{64})?", stage[0]) for stage in stages)


def test_it_runs_as_nobody_in_particular(recipe: list[tuple[str, str]]) -> None:
    last = rests(recipe, "USER")[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last)
    builds = [index for index, (word, _) in enumerate(recipe) if word in {"RUN", "COPY", "FROM"}]
    assert [word for word, _ in recipe].index("USER") > max(builds)


def test_it_installs_from_the_lock_only(recipe: list[tuple[str, str]]) -> None:
    syncs = [rest for rest in rests(recipe, "RUN") if rest.startswith("uv sync")]
    assert len(syncs) == 2
    assert all({"--frozen", "--no-dev"} <= set(sync.split()) for sync in syncs)
    assert "--no-editable" in syncs[-1]
    assert "pip install --no-cache-dir --require-hashes --requirement .ci/uv.txt" in rests(recipe, "RUN")


def test_what_it_copies_is_there_and_not_ignored(recipe: list[tuple[str, str]], root: Path) -> None:
    ignored, *rules = [
        line for line in (root / ".dockerignore").read_text("utf-8").splitlines() if line[:1] not in {"", "#"}
    ]
    assert ignored == "*"
    sources = [word for rest in rests(recipe, "COPY") if not rest.startswith("--from=") for word in rest.split()[:-1]]
    assert {f"!{source}" for source in sources} <= set(rules)
    assert [source for source in sources if not (root / source).exists()] == []


class Answer(BaseHTTPRequestHandler):
    """Answers with the status that the test has set on the server."""

    def do_GET(self) -> None:
        self.send_response(self.server.status if self.path == "/livez" else 404)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (None, False)])
def test_the_health_check_tells_life_from_death(
    recipe: list[tuple[str, str]], status: int | None, healthy: bool
) -> None:
    (rest,) = rests(recipe, "HEALTHCHECK")
    program, *arguments = json.loads(rest.partition(" CMD ")[2] or rest[rest.index("CMD") + 3 :])
    assert program == "python"
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.status = status  # type: ignore[attr-defined]
        code = [argument.replace("8000", str(server.server_port)) for argument in arguments]
        if status is None:
            server.server_close()
        else:
            threading.Thread(target=server.handle_request, daemon=True).start()
        done = subprocess.run([sys.executable, *code], capture_output=True, check=False)
    assert (done.returncode == 0) is healthy


def test_the_workflow_is_pinned_and_runs_the_one_check(root: Path) -> None:
    workflow = read_yaml(root / ".github/workflows/ci.yml")
    job = workflow["jobs"]["test"]
    assert {"3.11", "3.13"} <= set(job["strategy"]["matrix"]["python"])
    assert set(job["services"]) == {"postgres", "redis"}
    images = [service["image"] for service in job["services"].values()]
    assert all(re.search(r":\d[\w.]*(@sha256:[0-9a-f]{64})?$", image) for image in images)
    uses = [step["uses"] for step in job["steps"] if "uses" in step]
    assert uses
    assert all(re.search(r"@[0-9a-f]{40}$", use) for use in uses)
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert workflow["permissions"] == {"contents": "read"}
