"""Bars for what takes long, if they are wanted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._errors import PointsmanError


@contextmanager
def bar(what: str, steps: int, wanted: bool) -> Iterator[Callable[[int], object] | None]:
    """What to tell about steps that are done; nothing if no bar is wanted."""
    if not wanted:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise PointsmanError("progress=True needs tqdm: pip install tqdm") from None
    with tqdm(total=steps or None, desc=what) as shown:
        yield shown.update
