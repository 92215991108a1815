# Jobs of this machine wait for its cores. Snakemake 9 also holds them to 100 a second, and for that every job that ends
# leaves a timer behind which wakes the scheduler each second until the run ends: thousands of threads in a long run.
onstart:
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None
