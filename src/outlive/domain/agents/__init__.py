"""The data of agent tasks: requests, settings, results and the choice of a model."""
