"""One module for each agent client, which reads hook input and writes the reply."""
