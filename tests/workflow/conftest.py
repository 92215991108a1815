"""Whole-pipeline tests share one finished run of the smallest experiment."""

import pytest

from tests.workflow.project import Project


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    project = Project.make(tmp_path_factory.mktemp("finished") / "project")
    done = project.run("--benchmark-extended", cores=2)
    assert done.returncode == 0, done.stdout + done.stderr
    return project
