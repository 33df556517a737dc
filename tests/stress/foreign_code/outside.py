"""Code that uses modules and threads that the explorer does not control. Nothing listens at port 9."""

import _thread
import http.client
import threading
import urllib.request
from http.client import HTTPConnection
from urllib import parse, request

HERE = "127.0.0.1", 9


class ParsesOnly:
    """Sound: `urllib.parse` waits for nothing, and a constructor opens no connection."""

    def __init__(self) -> None:
        self.done = 0
        self.lock = threading.Lock()

    def act(self) -> None:
        parse.quote("a b")
        HTTPConnection(*HERE)

    def thread_a(self) -> None:
        self.act()
        with self.lock:
            self.done += 1

    def thread_b(self) -> None:
        with self.lock:
            self.done += 1

    def check(self) -> None:
        assert self.done == 2


class AsksAPackage(ParsesOnly):
    def act(self) -> None:
        urllib.request.urlopen("http://127.0.0.1:9/")


class AsksAModule(ParsesOnly):
    def act(self) -> None:
        request.urlopen("http://127.0.0.1:9/")


class AsksInside(ParsesOnly):
    def act(self) -> None:
        http.client.HTTPConnection(*HERE)


class AsksAClass(ParsesOnly):
    """The socket is opened by code that is not rewritten."""

    def act(self) -> None:
        HTTPConnection(*HERE).request("GET", "/")


class PoolOfProcesses(ParsesOnly):
    def act(self) -> None:
        from multiprocessing.pool import Pool

        Pool(1)


class Interrupts(ParsesOnly):
    def act(self) -> None:
        _thread.interrupt_main()


class StartsLow(ParsesOnly):
    """Sound: a thread of `_thread`, and which thread is the main thread."""

    def act(self) -> None:
        self.ended = threading.Event()
        assert threading.current_thread() is not threading.main_thread()
        assert isinstance(threading.current_thread(), threading.Thread)
        assert threading.main_thread().name == "MainThread"
        _thread.start_new_thread(self.ended.set, ())
        self.ended.wait()

    def check(self) -> None:
        super().check()
        assert threading.current_thread() is threading.main_thread()


class HasNoThread(ParsesOnly):
    def threads(self) -> list[object]:
        return []
