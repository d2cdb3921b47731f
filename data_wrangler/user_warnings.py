"""Warnings that point at the line of the user's, however deep in the package they are given.

That line is the innermost one outside the package, also where it is one of Keras or of click.
"""

import inspect
import warnings

_PACKAGE = __name__.partition(".")[0]


def warn_user(*sentences: str) -> None:
    """Gives one warning of all that there is to say; none where nothing is.

    Args:
        *sentences: without a point at their end; empty ones are left out.

    Warns:
        UserWarning: at the innermost line outside the package.
    """
    said = [sentence for sentence in sentences if sentence]
    if said:
        warnings.warn(". ".join(said), UserWarning, stacklevel=_frames_to_user() + 1)


def _frames_to_user() -> int:
    """Returns how many frames the first one outside the package lies above the caller."""
    count, frame = -1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        count, frame = count + 1, frame.f_back
    return count
