"""How many threads a job computes with: a number from its configuration, not from the machine it lands on."""

import os

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


def pin_threads(threads: int) -> None:
    """Bind BLAS, OpenMP and, where it gets imported, TensorFlow to a number of threads.

    To be called before TensorFlow is imported: results differ in the last bits with the number of threads, and
    Snakemake's own OMP variables do not reach TensorFlow. Libraries read these variables while they are loaded;
    the ones that are loaded already, such as NumPy's BLAS, are set directly.
    """
    threadpool_limits(threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(threads)
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
