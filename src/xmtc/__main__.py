"""Run the command line as `python -m xmtc`."""

import sys

from xmtc.app.cli import main

sys.exit(main())
