# Claims and figures: functions of tables.


rule claims:
    input:
        metrics=result("metrics.csv"),
        summary=result("summary.csv"),
        grids=later(drawable, "grid.h5"),
    output:
        result("claims.csv"),
    log:
        result("claims.log"),
    benchmark:
        result("claims.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="10m",
    params:
        config=later(plan.experiment_slice),
        code=code_of("dkef.stages.claims"),
    message:
        "judge the paper's claims"
    shell:
        "python -m dkef.stages.claims --config {params.config:q} --metrics {input.metrics}"
        " --summary {input.summary} --grids {input.grids}"
        " --out {output} > {log} 2>&1"


rule render:
    input:
        unpack(figure_inputs),
    output:
        pdf=figure("{figure}.pdf"),
        png=report(
            figure("{figure}.png"),
            caption="../report/caption.rst",
            category="Figures",
        ),
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
        tables=figure_arguments,
        caption=figure_caption,
    message:
        "render {wildcards.figure}"
    shell:
        "python -m dkef.stages.render --config {params.config:q} --figure {wildcards.figure}"
        " {params.tables} --out {output.pdf} {output.png} > {log} 2>&1"


rule separated:
    output:
        table=result("separated.csv"),
        verdict=result("separated.json"),
    log:
        result("separated.log"),
    benchmark:
        result("separated.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        code=code_of("dkef.stages.separated"),
    message:
        "fit two separated Gaussians (Appendix C)"
    shell:
        "python -m dkef.stages.separated --out {output.table} --verdict {output.verdict}"
        " > {log} 2>&1"


# Appendix C as a figure of its own; it needs no cell of the experiment.
ruleorder: mixtures > render


rule mixtures:
    input:
        table=result("separated.csv"),
        verdict=result("separated.json"),
    output:
        pdf=figure("mixtures.pdf"),
        png=report(
            figure("mixtures.png"),
            caption="../report/mixtures.rst",
            category="Figures",
        ),
    log:
        figure("mixtures.log"),
    benchmark:
        figure("mixtures.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        code=code_of("dkef.report.figures.mixtures"),
    message:
        "render mixtures"
    shell:
        "python -m dkef.report.figures.mixtures --table {input.table} --verdict {input.verdict}"
        " --out {output.pdf} {output.png} > {log} 2>&1"
