# Figures: functions of tables. dkef.report.figures.catalogue says which tables a figure reads.


rule render:
    input:
        unpack(figure_inputs),
    output:
        pdf=figure("{figure}.pdf"),
        png=figure("{figure}.png"),
    log:
        figure("{figure}.log"),
    benchmark:
        figure("{figure}.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1500),
        runtime="30m",
    params:
        config=later(plan.experiment_slice),
        code=code_of("dkef.stages.render", figure_modules),
        tables=figure_options,
    message:
        "render {wildcards.figure}"
    shell:
        "python -m dkef render --config {params.config:q} --figure {wildcards.figure}"
        " {params.tables} --out {output.pdf} {output.png} > {log} 2>&1"
