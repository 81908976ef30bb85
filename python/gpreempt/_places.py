# SPDX-License-Identifier: MIT
"""Where the library and the programs are: in a source tree, below the same prefix, or anywhere."""
from __future__ import annotations

import os
import shutil
import sysconfig
from typing import Iterator, List, Optional

_HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = 'libgpreempt.so.0'


def source_tree() -> Optional[str]:
    """The folder of the sources this package lies in, if it does."""
    root = os.path.dirname(os.path.dirname(_HERE))
    return root if os.path.exists(os.path.join(root, 'lib', 'libgpreempt.sym')) else None


def _build() -> Optional[str]:
    root = source_tree()
    if not root:
        return None
    return os.environ.get('GPREEMPT_BUILD') or os.path.join(root, 'build')


def _prefixes() -> Iterator[str]:
    """PREFIX/lib/python3/dist-packages/gpreempt, or .../python3.11/site-packages/..."""
    folder = _HERE
    for _ in range(5):
        folder = os.path.dirname(folder)
        if os.path.basename(folder) in ('lib', 'lib64'):
            yield os.path.dirname(folder)


def libraries() -> List[str]:
    """Paths to try, best first; a bare name is for the loader."""
    named = os.environ.get('GPREEMPT_LIBRARY')
    if named:
        return [os.path.join(named, LIBRARY) if os.path.isdir(named) else named]
    build = _build()
    found = [os.path.join(build, 'lib', LIBRARY)] if build else []
    arch = sysconfig.get_config_var('MULTIARCH') or ''
    for prefix in _prefixes():
        for folder in (os.path.join('lib', arch), 'lib64', 'lib'):
            found.append(os.path.join(prefix, folder, LIBRARY))
    return [path for path in found if os.path.exists(path)] + [LIBRARY]


def program(name: str) -> Optional[str]:
    """gpreempt or gpreemptd."""
    named = os.environ.get(name.upper())
    if named:
        return named
    build = _build()
    places = [os.path.join(build, 'cmd', name, name)] if build else []
    for prefix in _prefixes():
        places += [os.path.join(prefix, folder, name) for folder in ('bin', 'sbin')]
    places += [os.path.join(folder, name) for folder in ('/usr/local/sbin', '/usr/sbin')]
    here = next((p for p in places if os.access(p, os.X_OK) and os.path.isfile(p)), None)
    return here or shutil.which(name)
