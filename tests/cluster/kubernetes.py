"""The Kubernetes profile, as far as it goes without a cluster: what it sends is run by a stand-in for the server.

`make test-kubernetes` runs this. One pod is killed under way; the cell ends as in a run on this machine.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.pods import Pods, kubernetes_server
from tests.cluster.runs import ROOT, ClusterError, clone, command, finish, require_equal, say, started

# One cell with every kind of job, chunks of log Z in a group among them.
CELL = ("--config", "experiment=smoke", "--", "results/smoke/wine_recognition/dkef/seed0/metrics.csv")
PROFILE = ("--workflow-profile", "workflow/profiles/kubernetes", "--jobs", "2")


def main() -> None:
    """Run the test; on trouble keep its folder, and say in one sentence what it was."""
    folder = Path(tempfile.mkdtemp(prefix="dkef-kubernetes-"))
    local, remote = folder / "local", folder / "volume"
    try:
        if shutil.which("rsync") is None:
            raise ClusterError("rsync is not installed, with which the storage plugin copies files")
        plugins = install(folder / "plugins")
        clone(local)
        clone(remote)
        say(f"one cell on this machine, in {local}")
        finish(local, "--cores", "2", *CELL)
        say(f"the same in pods, on the volume {remote}")
        in_pods(remote, folder / "pods", plugins)
        require_equal(local, remote)
    except ClusterError as error:
        sys.exit(f"error: {error}; both runs are kept in {folder}")
    shutil.rmtree(folder)


def install(folder: Path) -> Path:
    """The plugins and what they need beyond this environment, in a folder of their own."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet")
    plugins = ("-r", str(ROOT / "workflow/profiles/kubernetes/requirements.txt"))
    report = json.loads(command(*pip, "--dry-run", "--report", "-", *plugins, seconds=600))
    missing = [f"{found['metadata']['name']}=={found['metadata']['version']}" for found in report["install"]]
    if missing:
        command(*pip, "--no-deps", "--target", str(folder), *missing, seconds=600)
    return folder


def in_pods(project: Path, folder: Path, plugins: Path) -> None:
    """Run the cell with the volume's checkout as the store, as a pod on the volume would."""
    path = os.pathsep.join(["src", str(plugins)])
    image = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}
    pods = Pods(folder, image | {"HOME": str(folder)})
    os.environ["KUBECONFIG"] = str(folder.with_suffix(".config"))
    with kubernetes_server(pods, Path(os.environ["KUBECONFIG"])):
        store = ("--default-storage-prefix", str(project))
        with started(project, *PROFILE, *store, *CELL, path=path) as run:
            kill_training(pods, run)
            if run.wait():
                raise ClusterError(f"the run in pods ended with {run.returncode}, see {project}/run.log and {folder}")
    asked = [pod["memory"] for pod in pods.asked]
    if "8000M" not in asked:
        raise ClusterError(f"the killed pod was not tried again with twice its memory; pods asked for {asked}")
    say(f"{len(asked)} pods asked for {', '.join(asked)} of memory")


def kill_training(pods: Pods, run: "subprocess.Popen[bytes]") -> None:
    """Kill the first pod that trains, once it has begun to."""
    for _ in range(600):
        if run.poll() is not None:
            raise ClusterError(f"the run in pods ended with {run.returncode} before a pod was killed")
        for name, process in list(pods.processes.items()):
            if process.poll() is None and ": train dkef on" in (pods.folder / name / "pod.log").read_text():
                os.killpg(process.pid, signal.SIGKILL)
                say(f"killed the pod {name} under way")
                return
        time.sleep(1)
    raise ClusterError("no pod trained within ten minutes")


if __name__ == "__main__":
    main()
