"""Built-in reference samples for every kind of answer, from `calibration_samples.json`.

A `verbose` sample says the same as its twin in many more words, to detect judges that reward
length.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Final

from assay.scoring.reference_samples import ReferenceSample

_FILE: Final = files(__package__) / "calibration_samples.json"

SAMPLES: Final = tuple(ReferenceSample(**row) for row in json.loads(_FILE.read_text("utf-8")))
