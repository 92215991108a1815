"""Faults that a process can only have inside itself; runs that have this on their path import it as they start.

DKEF_FAULTS_JUMP="moment shift": from that moment on the clock, and the times of files, are off by so many seconds.
DKEF_FAULTS_HANG=1: training hangs after its first checkpoint, and takes every look at its clock for a minute.
"""

import itertools
import os
import sys
import time

_replace, _utime, _time, _monotonic = os.replace, os.utime, time.time, time.monotonic


def _jump(moment, shift):
    def now():
        real = _time()
        return real + shift if real >= moment else real

    def utime(path, times=None, **options):
        if times is None and "ns" not in options:
            times = now(), now()
        _utime(path, times, **options)

    def replace(source, target, **options):
        _replace(source, target, **options)
        utime(target)  # the kernel, whose clock has not jumped, has set the time of the file

    time.time, time.time_ns, os.utime, os.replace = now, lambda: int(now() * 1e9), utime, replace


def _hang_after_checkpoint():
    looks = itertools.count()

    def replace(source, target, **options):
        _replace(source, target, **options)
        if os.path.basename(target).startswith("checkpoint-"):
            time.sleep(3600)

    # Training leaves a checkpoint every half minute.
    time.monotonic = lambda: _monotonic() + 61 * next(looks)
    os.replace = replace


if "DKEF_FAULTS_JUMP" in os.environ:
    _jump(*map(float, os.environ["DKEF_FAULTS_JUMP"].split()))
if "DKEF_FAULTS_HANG" in os.environ and sys.orig_argv[1:4] == ["-m", "dkef", "train"]:
    _hang_after_checkpoint()
