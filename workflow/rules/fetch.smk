# Raw files, from a local mirror (DKEF_DATA_MIRROR) or their public home.


def fetch_config(wildcards):
    return plan.fetch_slice(wildcards.file)


rule fetch:
    input:
        sources="data/sources.csv",
        code=code_of("dkef.fetch"),
    output:
        "data/raw/{file}",
    log:
        "data/raw/{file}.log",
    threads: 1
    resources:
        mem_mb=1000,
        runtime="4h",
    params:
        config=fetch_config,
    shell:
        "python -m dkef.fetch --config {params.config:q} --out {output} > {log} 2>&1"
