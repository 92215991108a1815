"""What the terminal shows of a failed job, and what it does not."""

import io
import logging
from enum import Enum
from pathlib import Path

import pytest

from dkef.core.screen import STOPPED, Screen, attach, last_sentence

COMMAND = "RuleException:\nCalledProcessError in file x.smk, line 2:\nCommand 'set -e; a --config '{\"b\":1}' > c' "


class Event(Enum):
    JOB_ERROR = "job_error"
    JOB_FINISHED = "job_finished"
    GROUP_ERROR = "group_error"


@pytest.fixture
def terminal() -> tuple[logging.Logger, Screen, io.StringIO]:
    logger, stream = logging.Logger("of this test"), io.StringIO()
    logger.addHandler(logging.StreamHandler(stream))
    return logger, attach(logger), stream


def fail(logger: logging.Logger, log: Path, jobid: int = 3) -> None:
    about = {"event": Event.JOB_ERROR, "rule_name": "train", "jobid": jobid, "log": [str(log)], "shellcmd": "a {}"}
    logger.error("Error in rule train", extra=about)


def test_the_last_error_of_a_log_is_its_sentence(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("12:00:00 start\nerror: the first\nerror: a.csv is empty; fetch it\n12:00:01 end\n")
    assert last_sentence(log) == "a.csv is empty; fetch it"


def test_a_bug_is_told_by_the_last_line_of_its_traceback(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("Traceback (most recent call last):\n  File x\nZeroDivisionError: division by zero\n\n")
    assert last_sentence(log) == "ZeroDivisionError: division by zero"


def test_an_empty_log_and_a_missing_one_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    assert last_sentence(tmp_path / "empty.log").startswith("its log is empty; it was killed")
    assert last_sentence(tmp_path / "none.log") == "it left no log"


def test_a_failure_shows_its_sentence_and_log_at_once_and_at_the_end(
    tmp_path: Path, terminal: tuple[logging.Logger, Screen, io.StringIO]
) -> None:
    logger, screen, stream = terminal
    log = tmp_path / "train.log"
    log.write_text("error: no rows; add some\n")
    logger.error(f"{COMMAND}returned non-zero exit status 1.")
    fail(logger, log)
    assert stream.getvalue().strip() == f"job 3 (train) failed: no rows; add some\n    log: {log}"
    assert screen.summary() == f"1 job failed, by log:\n  {log}\n    no rows; add some\n"


def test_a_killed_command_keeps_its_exit_status(terminal: tuple[logging.Logger, Screen, io.StringIO]) -> None:
    logger, _, stream = terminal
    logger.error(f"{COMMAND}returned non-zero exit status 137.")
    assert "the command returned non-zero exit status 137." in stream.getvalue()
    assert "--config" not in stream.getvalue()


def test_a_job_that_ends_well_at_its_second_try_is_not_in_the_summary(
    tmp_path: Path, terminal: tuple[logging.Logger, Screen, io.StringIO]
) -> None:
    logger, screen, _ = terminal
    fail(logger, tmp_path / "a.log", jobid=3)
    fail(logger, tmp_path / "b.log", jobid=4)
    logger.info("Finished jobid: 3", extra={"event": Event.JOB_FINISHED, "job_id": 3})
    assert screen.summary() == f"1 job failed, by log:\n  {tmp_path / 'b.log'}\n    it left no log\n"


def test_a_group_of_jobs_tells_of_each(tmp_path: Path, terminal: tuple[logging.Logger, Screen, io.StringIO]) -> None:
    logger, screen, stream = terminal
    jobs = [{"rule_name": "evaluate", "jobid": i, "log": [str(tmp_path / f"{i}.log")]} for i in (1, 2)]
    logger.error("Error in group evaluations", extra={"event": Event.GROUP_ERROR, "job_error_info": jobs})
    assert stream.getvalue().startswith("Error in group evaluations\njob 1 (evaluate) failed: it left no log")
    assert screen.summary().startswith("2 jobs failed, by log:\n")


def test_after_ctrl_c_one_line_is_shown(tmp_path: Path, terminal: tuple[logging.Logger, Screen, io.StringIO]) -> None:
    logger, screen, stream = terminal
    logger.info("Terminating processes on user request, this might take some time.")
    fail(logger, tmp_path / "a.log")
    logger.error("WorkflowError:\nAt least one job did not complete successfully.")
    assert stream.getvalue().strip() == STOPPED
    assert screen.summary() == ""


def test_a_job_that_saw_ctrl_c_first_has_not_failed(
    tmp_path: Path, terminal: tuple[logging.Logger, Screen, io.StringIO]
) -> None:
    logger, screen, _ = terminal
    (tmp_path / "a.log").write_text(f"{STOPPED}\n")
    fail(logger, tmp_path / "a.log")
    assert screen.summary() == ""


def test_files_keep_the_whole_record_and_attaching_twice_is_once(tmp_path: Path) -> None:
    logger, kept = logging.Logger("of this test"), tmp_path / "kept.log"
    stream, file = logging.StreamHandler(io.StringIO()), logging.FileHandler(kept)
    logger.addHandler(stream)
    logger.addHandler(file)
    assert attach(logger) is attach(logger)
    logger.error(f"{COMMAND}returned non-zero exit status 1.")
    file.close()
    assert "--config" in kept.read_text()
