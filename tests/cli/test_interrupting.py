"""Ctrl-C at every moment of a command."""

import subprocess
import sys

import pytest

START = """
import ctypes, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell start with it ignored
import oneofmany.cli as cli

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)

def endless():
    while True:
        time.sleep(0.01)
"""
LOST = """
def command(_):
    ctypes.CFUNCTYPE(None)(ctrl_c)()  # an exception in a callback is printed and forgotten
    endless()
"""
SWALLOWED = """
def command(_):
    try:
        ctrl_c()
        time.sleep(5)
    except BaseException:
        pass
    endless()
"""
COMPILED = """
def command(_):
    threading.Timer(0.1, ctrl_c).start()
    ctypes.CDLL(None).sleep(100)
    ctypes.CDLL(None).sleep(100)
    endless()
"""
TWICE = """
def command(_):
    try:
        ctrl_c()
        endless()
    finally:
        ctrl_c()
        time.sleep(0.1)
"""
HANDLED = """
from oneofmany.runs.signals import listening

def command(_):
    seen = []
    with listening(seen.append):
        ctrl_c()
        time.sleep(1)
    return 42 if seen == [signal.SIGINT] else 1
"""
SLOWLY = """
say = cli._fail

def slowly(why, code):
    say(why, code)
    time.sleep(1)  # a busy machine
    return code

cli._fail = slowly

def command(_):
    ctrl_c()
    endless()
"""
INSIDE_EXEC = """
def command(_):
    exec("ctrl_c(); endless()", globals())  # as dataclasses do while modules are loaded
"""
OTHER = """
def command(_):
    signal.signal(signal.SIGUSR1, lambda *_: None)
    os.kill(os.getpid(), signal.SIGUSR1)
    ctypes.CFUNCTYPE(None)(ctrl_c)()
    endless()
"""


def call(command):
    code = f"{START}{command}\ncli._dispatch = command\ncli.main([])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("command", [LOST, SWALLOWED, COMPILED, TWICE, SLOWLY, INSIDE_EXEC, OTHER])
def test_a_command_is_stopped(command):
    result = call(command)
    assert (result.returncode, result.stderr) == (130, "oneofmany: stopped\n")


def test_training_handles_the_signal_itself():
    assert call(HANDLED).returncode == 42


def test_a_background_job_ignores_ctrl_c():
    code = START.replace("signal.default_int_handler", "signal.SIG_IGN")
    code += "\ncli._dispatch = lambda _: (ctrl_c(), time.sleep(1), 42)[2]\ncli.main([])"
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 42
