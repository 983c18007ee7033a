"""Starts what compose.yaml describes on this machine, without Docker: the same processes, with the same commands and environment.

`python scripts/start_as_composed.py FOLDER [NAME=value…]` keeps data and logs in FOLDER; the values stand for those of `.env`. It
ends with Ctrl+C. PostgreSQL comes from a package of the tests, Redis and Caddy are those that are installed; names of
services become addresses of the loopback, every published or shared port a free one. Izzy runs from a folder with nothing but what the
Dockerfile copies, with the packages of the Python that runs this. So the file's commands, environment, order and health checks are
tried, not the image, the networks and the limits around its containers.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.peers.ports import free_port  # noqa: E402
from tests.peers.postgres import postgres  # noqa: E402

COMPOSE = ROOT / "compose.yaml"
START_SECONDS = 180.0
OUTER = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "TMPDIR")
"""The part of this machine's environment that processes get; a container has as much."""


class ComposeError(Exception):
    """The file asks for a value that is not given, or for something that this script does not do."""


@dataclass(frozen=True)
class Service:
    """A service of the file, its values put in."""

    name: str
    image: str
    command: list[str]
    environment: dict[str, str]
    replicas: int
    waits_for: dict[str, str]
    health: list[str]
    files: dict[str, str]
    grace: float


@dataclass
class Running:
    """The services that were started. `url` is Caddy's address, "" where Caddy is not installed; `webs` are the web processes' ports."""

    folder: Path
    url: str = ""
    webs: list[int] = field(default_factory=list)
    processes: dict[str, list["subprocess.Popen[bytes]"]] = field(default_factory=dict)

    def log(self, name: str) -> str:
        """Returns what the processes of a service have written."""
        files = sorted(self.folder.glob(f"{name}-*.log"))
        return "".join(file.read_text(errors="replace") for file in files)


def interpolated(text: str, values: Mapping[str, str]) -> str:
    """`${NAME}`, `${NAME:-else}` and `${NAME:?why}` as Compose reads them; one may stand in another's `else`."""
    pattern = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:[-?])([^${}]*))?\}")

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if name is None:
            return "$"
        found = values.get(name, "")
        if found or kind is None:
            return found
        if kind == ":?":
            raise ComposeError(f"{name}: {rest}")
        return str(rest)

    while (changed := pattern.sub(value, text)) != text:
        text = changed
    if "${" in text:
        raise ComposeError(f"{text} cannot be read")
    return text


def services(values: Mapping[str, str], file: Path = COMPOSE) -> dict[str, Service]:
    """The services of the file, in its order."""

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: filled(each) for key, each in node.items()}
        if isinstance(node, list):
            return [filled(each) for each in node]
        return interpolated(node, values) if isinstance(node, str) else node

    found = {}
    for name, given in filled(yaml.safe_load(file.read_text())["services"]).items():
        health = given.get("healthcheck", {})
        waits = given.get("depends_on", {})
        volumes = [volume.split(":") for volume in given.get("volumes", [])]
        found[name] = Service(
            name=name,
            image=given["image"],
            command=[str(part) for part in given.get("command", [])],
            environment={key: str(each) for key, each in given.get("environment", {}).items()},
            replicas=int(given.get("deploy", {}).get("replicas", 1)),
            waits_for={other: each["condition"] for other, each in waits.items()},
            health=[str(part) for part in health.get("test", [])[1:]],
            files={there: here for here, there, *_ in volumes if here.startswith("./")},
            grace=float(str(given.get("stop_grace_period", "10s")).removesuffix("s")),
        )
    return found


def image_environment(file: Path = ROOT / "Dockerfile") -> dict[str, str]:
    """ENV of the Dockerfile's last stage."""
    stage = file.read_text().replace("\\\n", " ").rpartition("\nFROM ")[2]
    lines = [line.removeprefix("ENV ") for line in stage.splitlines() if line.startswith("ENV ")]
    pairs = [part.partition("=") for line in lines for part in line.split()]
    return {name: value.strip('"') for name, _, value in pairs if name != "PATH"}


def image_files(folder: Path, file: Path = ROOT / "Dockerfile") -> Path:
    """Copies what the Dockerfile copies to /izzy into the folder's `izzy`, which is returned."""
    for line in re.findall(r"^COPY (?!--from)(.+)$", file.read_text(), re.MULTILINE):
        *sources, there = line.split()
        if not there.startswith("/izzy"):
            continue
        for source in sources:
            target = folder / there.strip("/") / (source if there.endswith("/") else "")
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy2
            copy(ROOT / source, target)  # with what is compiled already: it is told by the files' times
    return folder / "izzy"


@dataclass
class _Start:
    """The services, one after the other."""

    all: dict[str, Service]
    running: Running
    names: dict[str, str]
    """Stands for a container's address, port or path on this machine."""
    stack: ExitStack
    code: Path
    """The folder that stands for the image's /izzy."""

    def here(self, text: str) -> str:
        for there, here in self.names.items():
            text = text.replace(there, here)
        return text

    def start(self, service: Service) -> None:
        for name, condition in service.waits_for.items():
            self._wait(self.all[name], condition)
        kind = service.image.partition(":")[0].rpartition("/")[2]
        getattr(self, f"_start_{kind}")(service)

    def _start_pgvector(self, service: Service) -> None:
        server = self.stack.enter_context(postgres())
        self.names["@db:5432"] = f"@127.0.0.1:{server.port}"

    def _start_redis(self, service: Service) -> None:
        port = free_port()
        self.names["//redis:6379"] = f"//127.0.0.1:{port}"
        self._run(service, 1, [*service.command, "--bind", "127.0.0.1", "--port", str(port)], {})
        self._until(service, [*service.health[:1], "-p", str(port), *service.health[1:]])

    def _start_caddy(self, service: Service) -> None:
        if shutil.which("caddy") is None:
            return
        files = {there: str(ROOT / here) for there, here in service.files.items()}
        command = [files.get(part, part) for part in service.command]
        upstreams = " ".join(f"127.0.0.1:{port}" for port in self.running.webs)
        environment = {
            "IZZY_DOMAIN": self.running.url,
            "IZZY_UPSTREAMS": f"to {upstreams}",
            "XDG_DATA_HOME": str(self.running.folder),
            "XDG_CONFIG_HOME": str(self.running.folder),
        }
        self._run(service, 1, command, environment)

    def _start_izzy(self, service: Service) -> None:
        for number in range(1, service.replicas + 1):
            command = [sys.executable, "manage.py", *service.command]
            if "--port" in command:
                place = command.index("--port") + 1
                there, port = command[place], free_port()
                command[place] = str(port)
                command[command.index("--host") + 1] = "127.0.0.1"
                self.running.webs.append(port)
                self.names[f"127.0.0.1:{there}"] = f"127.0.0.1:{port}"
            self._run(service, number, command, image_environment())

    def _run(self, service: Service, number: int, command: list[str], more: dict[str, str]) -> None:
        given = (
            {**service.environment, **more}
            if service.image != "izzy:latest"
            else {**more, **service.environment}
        )
        outer = {name: os.environ[name] for name in OUTER if name in os.environ}
        environment = {name: self.here(value) for name, value in given.items()}
        with (self.running.folder / f"{service.name}-{number}.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.code, env=outer | environment, stdout=log, stderr=log
            )
        if service.name not in self.running.processes:
            self.stack.callback(self._stop, service)
        self.running.processes.setdefault(service.name, []).append(process)

    def _stop(self, service: Service) -> None:
        """Ends the service, together with the others of its image: they do not wait for one another."""
        alike = [name for name in self.running.processes if self.all[name].image == service.image]
        processes = [each for name in alike for each in self.running.processes[name]]
        for process in processes:
            process.terminate()
        for process in processes:
            self._ended(process, service.grace)

    def _ended(self, process: "subprocess.Popen[bytes]", grace: float) -> None:
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait(self, service: Service, condition: str) -> None:
        if condition == "service_completed_successfully":
            (process,) = self.running.processes[service.name]
            if process.wait(START_SECONDS):
                raise ComposeError(f"{service.name} failed:\n{self.running.log(service.name)}")
        elif service.image == "izzy:latest":
            for port in self.running.webs:
                test = [part.replace(":8000", f":{port}") for part in service.health]
                self._until(service, [sys.executable, *test[1:]])

    def _until(self, service: Service, command: list[str]) -> None:
        deadline = time.monotonic() + START_SECONDS
        command = [self.here(part) for part in command]
        while subprocess.run(command, capture_output=True, check=False).returncode:
            ended = [each.poll() for each in self.running.processes[service.name]]
            if time.monotonic() > deadline or any(code is not None for code in ended):
                raise ComposeError(f"{service.name} is not well:\n{self.running.log(service.name)}")
            time.sleep(0.3)


@contextmanager
def composed(folder: Path, values: Mapping[str, str]) -> Iterator[Running]:
    """Everything that the file describes, started in its order; ended, last first, when the block is left."""
    data = folder / "data"
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = f"http://127.0.0.1:{free_port()}"
    found = services({"IZZY_PUBLIC_URL": url, **values})
    with ExitStack() as stack:
        running = Running(folder, url if shutil.which("caddy") else "")
        places = {"/data": data, "/sandbox": folder / "sandbox", "/tmp/worker": folder / "beat"}
        names = {there: str(here) for there, here in places.items()}
        start = _Start(found, running, names, stack, image_files(folder))
        waiting = list(found.values())
        while waiting:
            ready = next(
                each for each in waiting if not set(each.waits_for) & {other.name for other in waiting}
            )
            waiting.remove(ready)
            start.start(ready)
        yield running


def main(folder: str, *given: str) -> None:
    values = dict(each.split("=", 1) for each in given)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with composed(Path(folder).resolve(), values) as running:
            ports = ", ".join(map(str, running.webs))
            print(
                f"Izzy is running at {running.url or 'no proxy'}; web processes at {ports}.", flush=True
            )
            print(running.log("prepare"), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    except ComposeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
