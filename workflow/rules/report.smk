# One self-contained page, by Snakemake's own reporter.


rule report:
    input:
        expand(FIGURES + "/{figure}.png", figure=plan.experiment.figures),
        RESULTS + "/summary.csv",
    output:
        RESULTS + "/report.html",
    log:
        RESULTS + "/report.log",
    threads: 1
    resources:
        mem_mb=1000,
        runtime="10m",
    params:
        config=plan.experiment_slice(),
    shell:
        "snakemake --report {output} --nolock {input} > {log} 2>&1"
