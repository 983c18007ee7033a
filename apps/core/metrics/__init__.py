"""Figures for Prometheus: declared where they are counted (`base`), kept by every process of the machine (`processes`), read at
`/metrics` together with what the rows say (`exposition`)."""
