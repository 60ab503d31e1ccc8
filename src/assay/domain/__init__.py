"""The words of Assay as frozen records, its state machines and its errors; standard library only."""
