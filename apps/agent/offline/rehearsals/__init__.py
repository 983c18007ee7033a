"""Tools that the offline model knows how to build: it writes, tries and hands them in like any builder, by heart."""
