"""Import results of other benchmark programs and of Assay into the store."""
