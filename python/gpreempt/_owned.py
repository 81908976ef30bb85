# SPDX-License-Identifier: MIT
"""What every object that has something of the library's does with it at its end."""
from __future__ import annotations

from typing import Optional, TypeVar

T = TypeVar('T', bound='Owned')


class Owned:
    """Closed by the end of a with statement, and by the end of the last reference at the latest."""
    _handle: Optional[int] = None  # None: closed, or never opened

    def close(self) -> None:
        """May be called twice."""
        raise NotImplementedError

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._handle is not None:
            self.close()
