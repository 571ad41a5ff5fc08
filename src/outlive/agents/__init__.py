"""Adapters of agent clients. A module starts one client and reads its output."""
