"""The exceptions that forksight.queue raises. Empty and Full are the classes of the standard module `queue`."""
import os
from queue import Empty, Full

from . import _native

__all__ = ["Closed", "Empty", "Error", "Full", "NoConsumer", "ProducerDied", "TooLarge"]


class Error(Exception):
    """An error of the queue. `code` is a value of the enum forksight_queue_code. `pid` is the id of the process that
    the error is about, or 0."""
    code = 0
    pid = 0


class Closed(Error, ValueError):
    """This handle was closed, or the queue has ended: shutdown() was called, or the last producer has closed."""


class ProducerDied(Closed):
    """The last producer died without closing, and nothing is queued. `pid` is the process id of that producer."""


class NoConsumer(Error):
    """There is no room, and no consumer is left that could make room."""


class TooLarge(Error, ValueError):
    """The item needs more bytes than one buffer of the queue has."""


CLASSES = {_native.CLOSED: Closed, _native.CANCELLED: Closed, _native.PRODUCER_DIED: ProducerDied,
           _native.NO_CONSUMER: NoConsumer, _native.TOO_LARGE: TooLarge}


def make_error(code, told):
    """Returns the exception for a code that is neither OK nor TIMEOUT."""
    text = told.text.decode(errors="replace")
    if told.sys_errno:
        text += f" ({os.strerror(told.sys_errno)})"
    error = CLASSES.get(code, Error)(text)
    error.code, error.pid = code, told.pid
    return error
