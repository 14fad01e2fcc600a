"""In the parent, the thread of an event loop of the AWS CRT makes a connection. The child does not have this thread.
Repaired: the child makes its own event loop."""
import os
import socket
import sys
import tempfile

from awscrt import http, io


def make_bootstrap():
    group = io.EventLoopGroup(1)
    return io.ClientBootstrap(group, io.DefaultHostResolver(group))


def connect(bootstrap, path):
    options = io.SocketOptions()
    options.domain = io.SocketDomain.Local
    http.HttpClientConnection.new(host_name=path, port=0, bootstrap=bootstrap, socket_options=options).result()


with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
    listener.bind(f"{folder}/socket")
    listener.listen()
    bootstrap = make_bootstrap()
    connect(bootstrap, f"{folder}/socket")
    child = os.fork()
    if child == 0:
        connect(make_bootstrap() if "repaired" in sys.argv else bootstrap, f"{folder}/socket")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
os._exit(status != 0)  # an ordinary exit might wait for the event loop
