"""The files and locks in a task's bundle, which is the task's own directory."""
