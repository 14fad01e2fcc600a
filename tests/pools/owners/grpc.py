"""The parent makes a gRPC channel and calls through it. In the child, a call through the same channel fails. Repaired:
only the child makes a channel."""
import os
import sys
import tempfile
from concurrent import futures

sys.path.pop(0)  # this file is also named grpc.py, and must not be imported instead of the module
import grpc  # noqa: E402


def call(channel):
    try:
        channel.unary_unary("/none/none")(b"")
    except grpc.RpcError as error:
        return error.code()


with tempfile.TemporaryDirectory() as folder:
    address = f"unix:{folder}/socket"
    ready, told = os.pipe(), os.pipe()
    server_pid = os.fork()
    if server_pid == 0:
        server = grpc.server(futures.ThreadPoolExecutor(1))
        server.add_insecure_port(address)
        server.start()
        os.write(ready[1], b"r")
        os.close(told[1])
        os.read(told[0], 1)
        os._exit(0)
    os.close(told[0])
    os.read(ready[0], 1)
    channel = None
    if "repaired" not in sys.argv:
        channel = grpc.insecure_channel(address)
        assert call(channel) == grpc.StatusCode.UNIMPLEMENTED
    child = os.fork()
    if child == 0:
        os.close(told[1])
        expected = grpc.StatusCode.UNAVAILABLE if channel else grpc.StatusCode.UNIMPLEMENTED
        assert call(channel or grpc.insecure_channel(address)) == expected
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    os.close(told[1])
    os.waitpid(server_pid, 0)
sys.exit(status != 0)
