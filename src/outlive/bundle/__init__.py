"""Files and locks of one task, and the kernel's facts about its processes. Knows no ledger."""
