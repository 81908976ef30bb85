# SPDX-License-Identifier: MIT
"""The structs and numbers of libgpreempt's headers, read from them in a source tree; where this is
installed, meson has put what scripts/records.py makes of them in the place of this one."""
from __future__ import annotations

import importlib.util
import os
from typing import Any

from . import _places


def _made() -> str:
    root = _places.source_tree()
    if not root:
        raise ImportError('gpreempt is neither installed nor in its source tree')
    path = os.path.join(root, 'scripts', 'records.py')
    spec = importlib.util.spec_from_file_location('records', path)
    assert spec and spec.loader
    records: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(records)
    return '\n'.join(records.python_module(records.of_tree(root)))


exec(_made())  # pylint: disable=exec-used
