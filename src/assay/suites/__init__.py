"""Files to suites and back; every complaint names file, line, field and mend."""
