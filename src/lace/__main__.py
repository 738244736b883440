"""``python -m lace`` is ``lace``."""

from .cli import main

raise SystemExit(main())
