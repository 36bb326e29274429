#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""long_pole.py TRACE [SCENARIO] - long_pole.c by way of ctypes: what holds a recorded run back, and what a change would gain."""
import ctypes
import os
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int32, c_size_t, c_uint32, c_uint64, c_void_p, sizeof

longpole = ctypes.CDLL(os.environ.get("LIBLONGPOLE", "liblongpole.so.1"))


class Sized(Structure):
    """What longpole/trace.h says of sizes. A struct may end where its user needs no more of it."""

    def __init__(self):
        super().__init__(size=sizeof(self))


class Error(Sized):
    _fields_ = [("size", c_size_t), ("status", c_int32), ("sys_errno", c_int32), ("text", ctypes.c_char * 3600)]


class Gain(Structure):
    _fields_ = [("speedup", c_double), ("low", c_double), ("high", c_double), ("method", c_char_p)]


class Answer(Sized):
    _fields_ = [("size", c_size_t), ("pole", c_char_p), ("finding", c_char_p), ("certainty", c_char_p), ("start_ns", c_uint64),
                ("end_ns", c_uint64), ("elapsed_ns", c_uint64), ("unexplained_ns", c_uint64), ("explained_share", c_double),
                ("polled_share", c_double), ("nr_threads", c_uint64), ("is_partial", c_uint32)]


class Part(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("where", c_char_p), ("text", c_char_p), ("kind", c_char_p),
                ("path_ns", c_uint64), ("share", c_double), ("is_lock", c_uint32), ("is_predicted", c_uint32), ("halved", Gain)]


class Prediction(Sized):
    _fields_ = [("size", c_size_t), ("gain", Gain), ("elapsed_ns", c_uint64), ("next", c_char_p)]


longpole.longpole_analysis_open.argtypes = [c_char_p, c_void_p, POINTER(c_void_p), POINTER(Error)]
longpole.longpole_analysis_answer.argtypes = [c_void_p, POINTER(Answer)]
longpole.longpole_analysis_part.argtypes = [c_void_p, c_uint32, POINTER(Part)]
longpole.longpole_analysis_close.argtypes = [c_void_p]
longpole.longpole_predictions_new.argtypes = [c_void_p, c_char_p, c_void_p, POINTER(c_void_p), POINTER(Error)]
longpole.longpole_predictions_prediction.argtypes = [c_void_p, c_uint64, POINTER(Prediction)]
longpole.longpole_predictions_free.argtypes = [c_void_p]


def call(function, *arguments):
    """Of a function that takes an error at its end, which becomes an exception."""
    error = Error()
    if function(*arguments, byref(error)):
        sys.exit("long_pole: " + error.text.decode())


def rows(function, handle, row):
    i = 0
    while function(handle, i, byref(row)) == 0:
        i += 1
        yield i


def main(trace, scenario="#1=-50%"):
    analysis, predictions, answer, part, p = c_void_p(), c_void_p(), Answer(), Part(), Prediction()
    call(longpole.longpole_analysis_open, os.fsencode(trace), None, byref(analysis))
    longpole.longpole_analysis_answer(analysis, byref(answer))
    print(answer.pole.decode())
    for i in rows(longpole.longpole_analysis_part, analysis, part):
        if part.is_predicted:
            print(f"#{i} {part.name.decode()}: {100 * part.share:.1f} %, halved {part.halved.speedup:.6f}")
    call(longpole.longpole_predictions_new, analysis, scenario.encode(), None, byref(predictions))
    for _ in rows(longpole.longpole_predictions_prediction, predictions, p):
        print(f"{p.gain.speedup:.6f} ({p.gain.low:.6f} to {p.gain.high:.6f}) by {p.gain.method.decode()}, then {p.next.decode()}")
    longpole.longpole_predictions_free(predictions)
    longpole.longpole_analysis_close(analysis)
    sys.exit(answer.is_partial)


main(*sys.argv[1:])
