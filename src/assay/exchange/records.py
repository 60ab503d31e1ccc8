"""The records every reader yields; they stand in `domain.found`, where the store knows them too."""

from assay.domain.found import Found as Found
from assay.domain.found import FoundAssessment as FoundAssessment
from assay.domain.found import FoundAtEnd as FoundAtEnd
from assay.domain.found import FoundCandidate as FoundCandidate
from assay.domain.found import FoundGrade as FoundGrade
from assay.domain.found import FoundResponse as FoundResponse
from assay.domain.found import FoundRun as FoundRun
from assay.domain.found import FoundTask as FoundTask
from assay.domain.found import GradedBy as GradedBy
from assay.domain.found import Held as Held
from assay.domain.found import Noted as Noted
from assay.domain.found import Skipped as Skipped
