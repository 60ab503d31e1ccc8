"""Compare two prompts on a CSV file; a person then reads the grades. Needs OPENAI_API_KEY."""

import csv

import assay

MODEL = "openai/gpt-5-mini"
with open("rows.csv", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
suite = assay.Suite(
    name="two prompts",
    tasks=rows,
    map={"prompt": "question", "expected": "answer"},
    candidates=[
        {"name": "terse", "model": MODEL, "prompt": "Answer in one word: {{question}}"},
        {"name": "long", "model": MODEL, "prompt": "Think step by step. {{question}}"},
    ],
    judge="openai/gpt-5",
)
run = assay.run(suite)
print(f"{len(run.pending())} grades await review. Read them: assay review --run {run.id}")
print("Then see the verdict: assay compare terse long")
