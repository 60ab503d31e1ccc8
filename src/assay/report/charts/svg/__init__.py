"""Charts as SVG text, drawn by Assay itself without any package, script or font."""
