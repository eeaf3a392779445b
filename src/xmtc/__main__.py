"""`python -m xmtc` is the command line."""

import sys

from xmtc.app.cli import main

sys.exit(main())
