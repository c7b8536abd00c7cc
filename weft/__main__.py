"""`python -m weft`: the `weft` command where it is not installed."""

import sys

from weft.cli.main import main

sys.exit(main())
