"""The command line, started as a module: `python -m outlive`."""

import sys

if sys.platform != "linux":
    from outlive.linux_only import exit_with_reason

    exit_with_reason()

from outlive.quick_import import install

install()

from outlive.cli.main import main  # noqa: E402

sys.exit(main())
