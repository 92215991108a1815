# One self-contained page, by Snakemake's own reporter.


rule report:
    input:
        report_inputs(),
    output:
        result("report.html"),
    log:
        result("report.log"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime="10m",
    params:
        config=plan.command_line(),
    shell:
        "snakemake --report {output} --nolock {input} --config {params.config:q} > {log} 2>&1"
