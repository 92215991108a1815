# Raw files, from a local mirror (DKEF_DATA_MIRROR) or their public home.
# A checked file stays valid whatever becomes of our code, so only its catalogue entry can ask for it again.


rule fetch:
    input:
        sources=ancient("data/sources.csv"),
    output:
        "data/raw/{file}",
    log:
        "data/raw/{file}.log",
    benchmark:
        "data/raw/{file}.benchmark.jsonl"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="4h",
    params:
        config=fetch_config,
    message:
        "fetch {wildcards.file} (log: {log})"
    shell:
        "python -m dkef fetch --config {params.config:q} --sources {input.sources}"
        " --out {output} > {log} 2>&1"
