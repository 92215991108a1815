"""Faults that a process can only have inside itself; runs that have this on their path import it as they start.

DKEF_FAULTS_HANG=1: training hangs after its first checkpoint, and takes every look at its clock for a minute.
"""

import itertools
import os
import sys
import time

_replace, _monotonic = os.replace, time.monotonic


def _hang_after_checkpoint():
    looks = itertools.count()

    def replace(source, target, **options):
        _replace(source, target, **options)
        if os.path.basename(target).startswith("checkpoint-"):
            time.sleep(3600)

    # Likelihood models leave a checkpoint every minute.
    time.monotonic = lambda: _monotonic() + 61 * next(looks)
    os.replace = replace


if "DKEF_FAULTS_HANG" in os.environ and "dkef.train" in sys.orig_argv:
    _hang_after_checkpoint()
