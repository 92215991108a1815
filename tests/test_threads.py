"""What pin_threads says, asked of the libraries themselves in a process that had them loaded before."""

import json
import subprocess
import sys

CODE = """
import json, os
os.environ["OPENBLAS_NUM_THREADS"] = "2"
import numpy as np
from threadpoolctl import threadpool_info
from dkef.core.threads import pin_threads
pin_threads(1)
import scipy.linalg
print(json.dumps([library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]))
"""


def test_pinning_binds_blas_that_is_loaded_already_and_blas_that_is_loaded_later() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found
    assert set(found) == {1}
