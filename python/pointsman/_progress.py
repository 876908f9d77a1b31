"""Progress bars."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._errors import PointsmanError


@contextmanager
def bar(what: str, steps: int, wanted: bool) -> Iterator[Callable[[int], object] | None]:
    """A function that advances a progress bar by a number of steps; ``None`` if no bar is wanted."""
    if not wanted:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise PointsmanError("progress=True needs tqdm: pip install tqdm") from None
    with tqdm(total=steps or None, desc=what) as shown:
        yield shown.update
