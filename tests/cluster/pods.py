"""A stand-in for a Kubernetes server: takes the jobs that Snakemake's executor creates and runs each in a fresh folder.

It shows that what the profile sends can run where nothing is shared but the volume; it does not show a real cluster.
"""

import base64
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Pods:
    """The jobs that were created, each a process of this machine in a folder of its own."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder, self.variables = folder, variables
        self.secrets: dict[str, dict[str, str]] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.asked: list[dict[str, str]] = []

    def create(self, job: dict[str, Any]) -> None:
        name, (container,) = job["metadata"]["name"], job["spec"]["template"]["spec"]["containers"]
        self.asked.append(container["resources"]["requests"])
        here = self.folder / name
        here.mkdir(parents=True)
        secret = {
            variable["name"]: self.secrets[source["name"]][source["key"]]
            for variable in container.get("env") or []
            for source in [variable["valueFrom"]["secretKeyRef"]]
        }
        with open(here / "pod.log", "wb") as log:
            words = [*container["command"], *container["args"]]
            environment = self.variables | secret
            self.processes[name] = subprocess.Popen(
                words, cwd=here, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, process_group=0
            )

    def status(self, name: str) -> dict[str, Any]:
        code = self.processes[name].poll()
        return {} if code is None else {"succeeded": 1} if code == 0 else {"failed": 1}


@contextmanager
def kubernetes_server(pods: Pods, config: Path) -> Iterator[None]:
    """Serve the few requests of the executor, and write the configuration that leads clients here."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def body(self) -> dict[str, Any]:
            return dict(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_POST(self) -> None:
            sent = self.body()
            if self.path.endswith("/secrets"):
                data = {key: base64.b64decode(value).decode() for key, value in (sent.get("data") or {}).items()}
                pods.secrets[sent["metadata"]["name"]] = data
            else:
                pods.create(sent)
            self.answer(sent)

        def do_GET(self) -> None:
            path = self.path.partition("?")[0].split("/")
            if path[-1] == "status":
                self.answer({"metadata": {"name": path[-2]}, "status": pods.status(path[-2])})
            else:
                self.answer({"items": []})

        def do_DELETE(self) -> None:
            self.answer({})

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    cluster = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    context = {"name": "here", "context": {"cluster": "here", "user": "me"}}
    users = [{"name": "me", "user": {}}]
    config.write_text(
        json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "here", "users": users})
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        for process in pods.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
