"""System calls that some builds of Python do not offer: futex(), memfd_create(), pidfd_open(), pidfd_send_signal(), and
kernel locks on bytes of a file. The kernel releases such a lock when its holder ends."""
import ctypes
import errno
import os
import platform
import weakref
from ctypes import c_char_p, c_int, c_long, c_size_t, c_uint, c_uint32, c_void_p
from multiprocessing import context, reduction

# The numbers of futex() and memfd_create() by machine. The numbers of pidfd_send_signal() and pidfd_open() are the same on all of
# these machines.
CALLS = {"x86_64": (202, 319), "aarch64": (98, 279), "riscv64": (98, 279), "loongarch64": (98, 279), "ppc64le": (221, 360), "s390x": (238, 350)}
PIDFD_SEND_SIGNAL, PIDFD_OPEN = 424, 434
try:
    FUTEX, MEMFD_CREATE = CALLS[platform.machine()]
except KeyError:
    raise ImportError(f"forksight.queue: the numbers of system calls on {platform.machine()} are not known: forksight.queue runs on "
                      + ", ".join(sorted(CALLS))) from None
if ctypes.sizeof(ctypes.c_void_p) != 8:
    raise ImportError("forksight.queue: needs a Python of 64 bits")

FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAKE_OP = 0, 1, 5
ALL = 0x7fffffff
ADD_ONE = 1 << 28 | 1 << 12  # FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0)
MFD_CLOEXEC, MFD_ALLOW_SEALING = 1, 2
F_ADD_SEALS, SEALS = 1033, 1 | 2 | 4  # F_SEAL_SEAL, F_SEAL_SHRINK and F_SEAL_GROW: no more seals, no smaller size, no larger size
F_OFD_GETLK, F_OFD_SETLK = 36, 37
# Errors of F_OFD_SETLK after which no other attempt can succeed. A seccomp filter may return EPERM, EACCES or ENOSYS.
# gVisor does not know the call, and returns EINVAL. EAGAIN is not one of these errors: it means that another holder has
# the lock.
CANNOT_LOCK = frozenset((errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP))
F_WRLCK, F_UNLCK = 1, 2
PROT_READ_WRITE, MAP_SHARED = 3, 1
PAGE = 4096

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = c_long
_mmap = _libc.mmap
_mmap.restype, _mmap.argtypes = c_void_p, [c_void_p, c_size_t, c_int, c_int, c_int, c_long]
_munmap = _libc.munmap
_munmap.restype, _munmap.argtypes = c_int, [c_void_p, c_size_t]


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", c_long), ("nanoseconds", c_long)]


class _Flock(ctypes.Structure):
    _fields_ = [("type", ctypes.c_short), ("whence", ctypes.c_short), ("start", ctypes.c_longlong), ("length", ctypes.c_longlong), ("pid", c_int)]


# fcntl() as a C function without Python code around it. If list.extend() over map() calls it, no Python signal handler runs
# between the system call and the storing of its result.
fcntl = ctypes.CFUNCTYPE(c_int, c_int, c_int, c_void_p, use_errno=True)(("fcntl", _libc))


def _raise(what):
    number = ctypes.get_errno()
    raise OSError(number, f"{what}: {os.strerror(number)}")


def memfd_create(name):
    """Returns the descriptor of a new memfd with FD_CLOEXEC. A Python that was built with an old libc has no os.memfd_create()."""
    made = _syscall(c_long(MEMFD_CREATE), c_char_p(name.encode()), c_uint(MFD_CLOEXEC | MFD_ALLOW_SEALING))
    return made if made >= 0 else _raise("memfd_create")


def pidfd_open(pid):
    """Returns a descriptor that becomes readable when the process ends. Returns None if the kernel is older than Linux 5.3, or if a
    seccomp filter refuses the call with EPERM. Raises ProcessLookupError if there is no such process."""
    made = _syscall(c_long(PIDFD_OPEN), c_int(pid), c_uint(0))
    if made >= 0:
        return made
    if ctypes.get_errno() in (errno.ENOSYS, errno.EPERM):  # EPERM comes from seccomp filters of old container runtimes
        return None
    return _raise("pidfd_open")


def pidfd_send_signal(pidfd, number):
    """Sends a signal to the process of a pidfd. The signal never reaches a later process that has the same pid."""
    if _syscall(c_long(PIDFD_SEND_SIGNAL), c_int(pidfd), c_int(number), c_void_p(None), c_uint(0)) != 0:
        _raise("pidfd_send_signal")


def futex_wait(address, expected, seconds):
    """Sleeps until another thread wakes this thread, a signal arrives, or `seconds` have passed. Returns at once if the
    word at `address` is not `expected`."""
    span = _Timespec(int(seconds), int(seconds % 1 * 1e9))
    _syscall(c_long(FUTEX), c_void_p(address), c_int(FUTEX_WAIT), c_uint32(expected), ctypes.byref(span), c_void_p(None), c_uint32(0))


def futex_wake(address, count):
    _syscall(c_long(FUTEX), c_void_p(address), c_int(FUTEX_WAKE), c_int(count), c_void_p(None), c_void_p(None), c_uint32(0))


def futex_add_one_and_wake(address):
    """Adds 1 to the word at `address` atomically, and wakes all threads that sleep on this word. The kernel does the
    addition, because Python has no atomic operations."""
    _syscall(c_long(FUTEX), c_void_p(address), c_int(FUTEX_WAKE_OP), c_int(ALL), c_void_p(0), c_void_p(address), c_uint32(ADD_ONE))


_segments = weakref.WeakSet()


def _renew_in_child():
    for segment in list(_segments):
        segment.renew()


os.register_at_fork(after_in_child=_renew_in_child)


class Segment:
    """A memfd that is mapped, and an open file description of this process for kernel locks on its bytes.

    A lock belongs to the open file description. The kernel releases the lock when nothing refers to the description any
    more. The locks of this process must be released when it ends, however it ends. So no other process may refer to the
    description. A mapping refers to a description, too, and a forked child inherits the mapping. So the mapping uses
    another description of the memfd. A forked child first replaces the inherited description by one of its own."""

    def __init__(self, size, name="forksight-shared", descriptor=None):
        """Makes a new memfd of `size` bytes, or uses the memfd of `descriptor`. That memfd must have at least `size` bytes, and
        the caller still has to close `descriptor`."""
        self.users = []
        memory = descriptor if descriptor is not None else memfd_create(name)
        self.descriptor = self.shared = -1
        self.address = None
        try:
            if descriptor is None:
                os.ftruncate(memory, size)
                if fcntl(memory, F_ADD_SEALS, SEALS) != 0:
                    _raise("the seals of a memfd")
            self.size = os.fstat(memory).st_size
            if self.size < size:
                raise OSError(errno.EINVAL, f"a shared object has {self.size} bytes, but needs {size}")
            self.descriptor = _open_anew(memory)
            address = _mmap(None, self.size, PROT_READ_WRITE, MAP_SHARED, memory, 0)
            if address == c_void_p(-1).value:
                _raise("mmap of a memfd")
            self.address = address
        finally:
            if descriptor is None:
                os.close(memory)
        self.words = (c_uint32 * (PAGE // 4)).from_address(self.address)
        _segments.add(self)

    def __del__(self, munmap=_munmap, close=os.close):  # when the interpreter ends, the globals may be gone already
        if self.address is not None:
            munmap(self.address, self.size)
        for number in (self.descriptor, self.shared):
            if number >= 0:
                close(number)

    def __reduce__(self):
        if context.get_spawning_popen() is not None:
            return _attach_inherited, (reduction.DupFd(self.share()),)
        number = self.share()
        about = os.fstat(number)
        return _attach_foreign, (os.getpid(), number, about.st_dev, about.st_ino)

    def renew(self):
        """Called in a forked child. Replaces the open file description that the child has inherited by one of its own.
        Otherwise the locks of the parent would last until the child ends."""
        own = -1
        try:
            own = _open_anew(self.descriptor)
        except OSError:
            pass  # the next attempt to lock a byte raises an error
        if own >= 0:
            os.dup2(own, self.descriptor, inheritable=False)
            os.close(own)
        else:
            os.close(self.descriptor)
            self.descriptor = -1
        for user in self.users:
            user = user()
            if user is not None:
                user.renew()

    def address_of(self, word):
        return self.address + 4 * word

    def share(self):
        """Returns a descriptor for other processes. Its open file description has no locks."""
        if self.shared < 0:
            self.shared = _open_anew(self.descriptor)
        return self.shared

    def byte_lock(self, byte, kind):
        """Returns the structure by which fcntl() locks a byte (kind F_WRLCK) or unlocks it (kind F_UNLCK)."""
        return _Flock(type=kind, whence=os.SEEK_SET, start=byte, length=1)

    def is_locked_elsewhere(self, byte):
        """Returns True if another process, or another Segment of this process, holds the lock on a byte."""
        asked = self.byte_lock(byte, F_WRLCK)
        if fcntl(self.descriptor, F_OFD_GETLK, ctypes.byref(asked)) != 0:
            _raise("a lock on a byte of a memfd")
        return asked.type != F_UNLCK


def check_lock_errno():
    """Called after fcntl() has failed to lock a byte. Raises OSError if no attempt can succeed. Otherwise returns, for example if
    another holder has the lock."""
    number = ctypes.get_errno()
    if number in CANNOT_LOCK:
        raise OSError(number, f"locking a byte of a memfd: {os.strerror(number)}")


def _open_anew(descriptor):
    """Returns a descriptor of a new open file description of the same file."""
    try:
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise OSError(errno.ENOENT, "forksight.queue needs /proc: it opens its shared memory by /proc/self/fd") from error


def state_of(pid):
    """Returns the letter of a process's state, as in ps. Returns "?" if there is no such process or its state cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return "?"



def _attach_inherited(descriptor):
    number = descriptor.detach()
    try:
        return Segment(PAGE, descriptor=number)
    finally:
        os.close(number)


def open_foreign(pid, number, device, inode, what):
    """Opens the file that is behind descriptor `number` of process `pid`. Returns a descriptor, which the caller closes. Raises
    OSError if the file cannot be opened, or does not have this device and inode."""
    path = f"/proc/{pid}/fd/{number}"
    try:
        own = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise OSError(error.errno, f"the {what} of process {pid} cannot be opened by {path}: {error.strerror}. That process must still "
                      f"run, in this PID namespace, and must still have the {what}") from error
    about = os.fstat(own)
    if (about.st_dev, about.st_ino) != (device, inode):
        os.close(own)
        raise OSError(errno.ESTALE, f"{path} is not the {what} that was pickled: process {pid} does not have this {what} any more")
    return own


def _attach_foreign(pid, number, device, inode):
    own = open_foreign(pid, number, device, inode, "shared object")
    try:
        return Segment(PAGE, descriptor=own)
    finally:
        os.close(own)
