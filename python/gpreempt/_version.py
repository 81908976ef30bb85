# SPDX-License-Identifier: MIT
"""The version, as the build file of the source tree says it; where this is installed, meson has
put a file with nothing but the number in the place of this one."""
from __future__ import annotations

import os
import re

from . import _places


def _read() -> str:
    root = _places.source_tree()
    if not root:
        return 'unknown'
    with open(os.path.join(root, 'meson.build'), encoding='utf-8') as f:
        found = re.search(r"^ *version: '([^']+)'", f.read(), re.MULTILINE)
    return found.group(1) if found else 'unknown'


VERSION = _read()
