"""The effects of tasks: paths that tasks have changed or are about to change."""
