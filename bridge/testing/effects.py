"""What a tool does to the world, as a test sees it: functions that are watched, or a log that the test keeps."""

import inspect
import reprlib
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeAlias, overload

__all__ = ["Effects", "Seen", "Snapshot", "snapshot_of"]

Snapshot: TypeAlias = Callable[[], list[str]]
"""All effects so far, in words."""

_ABSENT: Final = object()
_short = reprlib.Repr()
_short.maxstring, _short.maxother = 40, 60


class Effects:
    """Notes the calls of the functions that it watches.

    effects.watch(shop.payments, "charge")                # notes each call, and makes it
    effects.watch(shop.mail, "send", returns=None)        # notes each call, and returns None in place of it
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        """Every effect so far, in words, such as `charge(5)`."""
        self._undo: list[Callable[[], None]] = []

    @overload
    def watch(self, owner: Callable[..., Any], /, *, returns: Any = ...) -> Callable[..., Any]: ...

    @overload
    def watch(self, owner: Any, name: str, /, *, returns: Any = ...) -> Callable[..., Any]: ...

    def watch(self, owner: Any, name: str | None = None, /, *, returns: Any = _ABSENT) -> Callable[..., Any]:
        """Watch a function, sync or async: each call of it is an effect.

        Args:
            owner: the module, class or object that has the function, as the tool looks it up; or the function itself.
            name: its name there; it is replaced until the test is over. Without a name nothing is replaced.
            returns: what to return in place of calling it. By default it is called.

        Returns:
            The watched function, to be handed to code that takes a function.

        Raises:
            TypeError: what is to be watched cannot be called.
            AttributeError: the owner has nothing of that name.
        """
        function = owner if name is None else getattr(owner, name)
        if not callable(function):
            raise TypeError(f"only what can be called can be watched, not {function!r}: pass a module and a name")
        called = name or str(getattr(function, "__name__", repr(function)))
        watched = self._watched(function, called, returns)
        if name is not None:
            own = vars(owner).get(name, _ABSENT)
            setattr(owner, name, watched)
            self._undo.append(lambda: delattr(owner, name) if own is _ABSENT else setattr(owner, name, own))
        return watched

    def note(self, effect: str) -> None:
        """Note an effect in words, from a fake of one's own."""
        self.seen.append(effect)

    def undo(self) -> None:
        """Put back what was replaced."""
        while self._undo:
            self._undo.pop()()

    def _watched(self, function: Callable[..., Any], name: str, returns: Any) -> Callable[..., Any]:
        def noted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            given = [_short.repr(value) for value in args] + [f"{key}={_short.repr(v)}" for key, v in kwargs.items()]
            self.note(f"{name}({', '.join(given)})")

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def calls(*args: Any, **kwargs: Any) -> Any:
                noted(args, kwargs)
                return await function(*args, **kwargs) if returns is _ABSENT else returns

            return calls

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            noted(args, kwargs)
            return function(*args, **kwargs) if returns is _ABSENT else returns

        return called


Seen: TypeAlias = Sequence[Any] | Callable[[], int | Sequence[Any]] | Effects
"""Where effects are seen: a log that grows, a function that counts them or returns such a log, or `Effects`."""


def snapshot_of(seen: Seen) -> Snapshot:
    """Make a function that says what has been done so far.

    Raises:
        TypeError: effects cannot be seen in that.
    """
    if isinstance(seen, Effects):
        return lambda: list(seen.seen)
    if callable(seen):
        return lambda: _in_words(seen())
    if isinstance(seen, Sequence) and not isinstance(seen, str | bytes):
        return lambda: _in_words(seen)
    raise TypeError(f"effects must be a list that grows, a function that counts, or Effects, not {seen!r}")


def _in_words(found: int | Sequence[Any]) -> list[str]:
    if isinstance(found, int):
        return ["an effect"] * found
    return [item if isinstance(item, str) else _short.repr(item) for item in found]
