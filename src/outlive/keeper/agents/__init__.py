"""The part of a keeper's work that only agent tasks need."""
