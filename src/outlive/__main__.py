"""`python -m outlive`: the command line without its script."""

import sys

from outlive.cli.main import main

sys.exit(main())
