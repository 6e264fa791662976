"""Where each page of the site stands."""

import commands
import documents

DOCS = "hybridsim/docs"
# documents that stand beside the code: their pages of the site
BESIDE = {
    "README.md": "readme.md",
    "hybridsim/DESIGN.md": "design/index.md",
    "hybridsim/FIDELITY.md": "explanation/fidelity.md",
    "hybridsim/caches/policies/learned/LEARNED.md": "explanation/learned.md",
    "hybridsim/CHANGELOG.md": "changes.md",
    "benchmarks/RESULTS.md": "explanation/results.md",
    "validate/README.md": "validate/index.md",
    "validate/lab/README.md": "validate/lab.md",
    "validate/installed/README.md": "validate/installed.md",
    "validate/results/README.md": "validate/results.md",
    "traces/README.md": "reference/traces.md",
    ".github/CONTRIBUTING.md": "contributing.md",
}
NAVIGATION = [
    "index.md",
    "tutorial.md",
    {
        "How to": [
            "how-to/plan.md",
            "how-to/weeks.md",
            "how-to/serve.md",
            "how-to/research.md",
            "how-to/notebooks.md",
            "how-to/validate.md",
            "how-to/policy.md",
            "how-to/device.md",
            "how-to/figure.md",
            "questions.md",
        ]
    },
    {
        "Reference": [
            {"Commands": [*commands.addresses()]},
            "reference/input.md",
            "reference/formats.md",
            "reference/thinned.md",
            "reference/traces.md",
            "reference/machines.md",
            "reference/scenario.md",
            "reference/workloads.md",
            "reference/policies.md",
            "reference/catalog.md",
            "reference/python.md",
            {"JSON documents": [*documents.addresses()]},
            "reference/words.md",
        ]
    },
    {
        "Explanation": [
            "explanation/fidelity.md",
            "explanation/intervals.md",
            "explanation/learned.md",
            {
                "The model": [
                    "model/index.md",
                    "model/source.md",
                    "model/page-cache.md",
                    "model/policies.md",
                    "model/arrays.md",
                    "model/hdd.md",
                    "model/ssd.md",
                    "model/flash.md",
                    "model/volume.md",
                    "model/host.md",
                    "model/controller.md",
                    "model/bcache.md",
                    "model/opencas.md",
                    "model/dmcache.md",
                    "model/writecache.md",
                    "model/throttle.md",
                    "model/events.md",
                ]
            },
            {
                "Design": [
                    "design/index.md",
                    "design/decisions.md",
                    "design/traces.md",
                    "design/workloads.md",
                    "design/twins.md",
                    "design/not-modelled.md",
                ]
            },
            {
                "Validation": [
                    "validate/index.md",
                    "validate/lab.md",
                    "validate/installed.md",
                    "validate/results.md",
                ]
            },
            "explanation/results.md",
        ]
    },
    {"Project": ["readme.md", "changes.md", "contributing.md"]},
]
