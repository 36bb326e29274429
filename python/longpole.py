# SPDX-License-Identifier: Apache-2.0
"""longpole - asks traces what holds their runs back, and tells a recorder what this program does.

    import longpole
    with longpole.open("app.lpt") as run:
        print(run.answer.pole)
        for part in run.parts:
            print(part.name, part.share, part.halved.speedup)
        print(run.predict("#1=-50%")[0].gain)

    for record in longpole.records("app.lpt", "lock_wait"):
        print(record.time_ns, record.fields["object"])

    with longpole.state("parse"):    # in a program that `longpole` records; else nothing happens
        parse()

Answers are named tuples with the members that longpole/analysis.h and longpole/trace.h describe, so pandas.DataFrame(run.parts) is a
table. Times are nanoseconds. What fails raises longpole.Error. It needs liblongpole.so.1, which is installed with longpole; the
environment's LIBLONGPOLE names another one.
"""
import _ctypes
import collections
import contextlib
import ctypes
import functools
import glob
import os
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

__all__ = ["Error", "Run", "enter", "machine", "open", "records", "state"]
END, USAGE = 1, -8


class Error(Exception):
    """What liblongpole says went wrong. status: an enum longpole_status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


# ---- structs of the public headers ---------------------------------------------------------------

U32, U64, F64, TEXT = c_uint32, c_uint64, c_double, c_char_p


def _struct(name, members, is_sized=True):
    """A struct of the headers, and the named tuple that is made of it. members: "type: names", in order."""
    types = {"u32": U32, "u64": U64, "f64": F64, "text": TEXT, "s32": c_int32, "s64": c_int64, "bytes": c_size_t, "any": c_void_p}
    fields = [("size", c_size_t)] if is_sized else []
    for line in members.split("\n"):
        kind, _, names = line.strip().partition(": ")
        fields += [(member, types.get(kind) or STRUCTS[kind]) for member in names.split()]
    struct = type("_" + name, (ctypes.Structure,), {"_fields_": fields})
    struct.shown = [member for member, _ in fields if member not in ("size", "reserved")]
    struct.tuple = collections.namedtuple(name, struct.shown)
    STRUCTS[name] = struct
    return struct


STRUCTS = {}
Gain = _struct("Gain", "f64: speedup low high\ntext: method", is_sized=False)
Answer = _struct("Answer", """text: pole finding certainty
    u64: start_ns end_ns elapsed_ns unexplained_ns
    f64: explained_share polled_share
    u64: nr_threads
    u32: is_partial nr_parts nr_states""")
Part = _struct("Part", """text: name where text kind
    u64: path_ns
    f64: share
    u32: is_lock is_predicted
    Gain: halved gone
    text: then
    u64: nr_waits wait_ns waiters_max""")
State = _struct("State", """text: state where actor group kind
    u64: path_ns unexplained_ns
    f64: share waiting_share
    u64: visits
    u32: nr_actors reserved""")
Step = _struct("Step", "text: actor state where kind queue\nu64: begin_ns end_ns increment_ns nr_edges")
Queue = _struct("Queue", """text: name type
    u64: nr_members nr_enqueues nr_dequeues enqueued_units dequeued_units nr_waits_for_units wait_for_units_ns
    u64: nr_waits_for_room wait_for_room_ns nr_latencies latency_ns residence_ns max_units
    f64: mean_units""")
Prediction = _struct("Prediction", """Gain: gain
    u64: elapsed_ns
    text: next
    f64: next_share throughput throughput_low throughput_high
    u64: nr_stuck
    text: stuck
    f64: path_speedup replay_speedup
    u32: is_estimated nr_edits""")
Loss = _struct("Loss", "text: name severity text\nu64: count\nu32: is_partial reserved")
_Record = _struct("_Record", "u64: time_ns\nu32: stream kind\ntext: kind_name\nu32: nr_fields reserved")
_Field = _struct("_Field", "s32: type\nu32: reserved\ntext: name unit doc")
_Value = _struct("_Value", "s32: type\nu32: reserved\nu64: u64\ns64: s64\ntext: text\nbytes: text_bytes")
Record = collections.namedtuple("Record", "time_ns stream kind fields")


class _Error(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("status", c_int32), ("sys_errno", c_int32), ("text", ctypes.c_char * 3600)]


def _plain(struct):
    """As a named tuple: of bytes text, of a struct in it a tuple, of what is asked for with is_ a truth value."""
    def plain(member, value):
        if isinstance(value, ctypes.Structure):
            return _plain(value)
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        return bool(value) if member.startswith("is_") else value
    return struct.tuple._make(plain(member, getattr(struct, member)) for member in struct.shown)


# ---- the library ---------------------------------------------------------------------------------

def _places():
    """Where it may be: where the environment says; where the loader looks; beside this module, under the same prefix."""
    if os.environ.get("LIBLONGPOLE"):
        return [os.environ["LIBLONGPOLE"]]
    above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return ["liblongpole.so.1"] + [path for between in ("", "*/", "../lib64/") for path in glob.glob(above + "/" + between + "liblongpole.so.1")]


@functools.lru_cache(maxsize=None)
def _library():
    """Its functions; OSError: it is not here."""
    why = None
    for place in _places():
        try:
            library = ctypes.CDLL(place)
            # A recorder does not see when a library that is found by a bare name has been loaded: it looks when one is closed.
            _ctypes.dlclose(ctypes.CDLL(place)._handle)  # pylint: disable=protected-access
            break
        except OSError as error:
            why = why or error
    else:
        raise OSError("liblongpole.so.1, which is installed with longpole, cannot be loaded (%s); LIBLONGPOLE=FILE says where it is" % why)
    handle, ret, error = c_void_p, POINTER(c_void_p), POINTER(_Error)
    library.longpole_analysis_open.argtypes = [TEXT, c_void_p, ret, error]
    library.longpole_analysis_answer.argtypes = [handle, c_void_p]
    library.longpole_analysis_close.argtypes = [handle]
    library.longpole_path_new.argtypes = [handle, ret, error]
    library.longpole_queues_new.argtypes = [handle, TEXT, ret, error]
    library.longpole_predictions_new.argtypes = [handle, TEXT, c_void_p, ret, error]
    for name in ("path", "queues", "predictions"):
        getattr(library, "longpole_%s_free" % name).argtypes = [handle]
    for name, index in (("analysis_part", U32), ("analysis_state", U32), ("analysis_loss", U32), ("path_step", U64), ("queues_queue", U64),
                        ("predictions_prediction", U64)):
        getattr(library, "longpole_" + name).argtypes = [handle, index, c_void_p]
    library.longpole_trace_open.argtypes = [TEXT, c_void_p, ret, error]
    library.longpole_trace_next.argtypes = [handle, c_void_p, error]
    library.longpole_trace_field.argtypes = [handle, U32, c_void_p]
    library.longpole_trace_close.argtypes = [handle]
    library.longpole_trace_stream_name.argtypes = [handle, U32]
    library.longpole_trace_stream_name.restype = TEXT
    library.longpole_kind_find.argtypes = [TEXT, c_void_p]
    library.longpole_kind_field.argtypes = [U32, U32, c_void_p]
    library.longpole_annotate_hooks.restype = POINTER(_Hooks)
    return library


def _call(function, *arguments):
    """Of a function with an error at its end. Returns the status, 0 or END."""
    error = _Error(size=ctypes.sizeof(_Error))
    status = function(*arguments, byref(error))
    if status < 0:
        raise Error(status, error.text.decode(errors="replace"))
    return status


def _rows(function, handle, struct):
    rows, row = [], struct(size=ctypes.sizeof(struct))
    while function(handle, len(rows), byref(row)) == 0:
        rows.append(_plain(row))
    return rows


# ---- answers -------------------------------------------------------------------------------------

class Run:
    """The analysis of a trace; a context manager. Used by one thread at a time."""

    def __init__(self, path):
        self._library, self._handle = _library(), c_void_p()
        _call(self._library.longpole_analysis_open, os.fsencode(path), None, byref(self._handle))

    def close(self):
        """Gives its memory back; closing twice does nothing."""
        if self._handle:
            self._library.longpole_analysis_close(self._handle)
            self._handle = c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def _opened(self):
        if not self._handle:
            raise Error(USAGE, "the run is closed")
        return self._handle

    @property
    def answer(self):
        """An Answer: the long pole, how long the run took, how much of that is explained."""
        answer = Answer(size=ctypes.sizeof(Answer))
        self._library.longpole_analysis_answer(self._opened(), byref(answer))
        return _plain(answer)

    @property
    def parts(self):
        """What the critical path is made of, longest first: of [Part]. The first is "#1" in scenarios."""
        return _rows(self._library.longpole_analysis_part, self._opened(), Part)

    @property
    def states(self):
        """What actors were in on the path, longest first: of [State]."""
        return _rows(self._library.longpole_analysis_state, self._opened(), State)

    @property
    def losses(self):
        """What was lost, is damaged, or is to be known: of [Loss]."""
        return _rows(self._library.longpole_analysis_loss, self._opened(), Loss)

    def _made(self, name, rows, struct, *arguments):
        handle = c_void_p()
        _call(getattr(self._library, "longpole_%s_new" % name), self._opened(), *arguments, byref(handle))
        try:
            return _rows(getattr(self._library, "longpole_" + rows), handle, struct)
        finally:
            getattr(self._library, "longpole_%s_free" % name)(handle)

    def path(self):
        """The critical path in order of time: of [Step]. A pass over the trace."""
        return self._made("path", "path_step", Step)

    def queues(self, pattern=None):
        """Queues whose name has the pattern, or matches it as a glob; those most waited at first: of [Queue]. A pass over the trace."""
        return self._made("queues", "queues_queue", Queue, os.fsencode(pattern) if pattern else None)

    def predict(self, scenarios):
        """What changes would gain: of [Prediction], one a scenario. The text is as longpole-whatif(1) has it: an edit a line, an empty
        line between scenarios. Passes over the trace, and simulations."""
        return self._made("predictions", "predictions_prediction", Prediction, scenarios.encode(), None)


def open(path):  # pylint: disable=redefined-builtin
    """Analyses the trace of that path: a Run."""
    return Run(path)


def _field_names(library, kind):
    names, field = [], _Field(size=ctypes.sizeof(_Field))
    while library.longpole_kind_field(kind, len(names), byref(field)) == 0:
        names.append(field.name.decode())
    return names


def _value(value):
    """A number; of an id or an enumeration its name, where it has one."""
    text = ctypes.string_at(value.text, value.text_bytes).decode(errors="replace") if value.text_bytes else ""
    return text or (value.s64 if value.type == 2 else "" if value.type == 3 else value.u64)


def records(path, kind=None):
    """The records of a trace in order of time, as they are read: Record(time_ns, stream, kind, {field: value}). stream: the name of who
    did it. kind: only those of that kind, as longpole-dump(1) names them."""
    library, trace, names = _library(), c_void_p(), {}
    if kind is not None and library.longpole_kind_find(kind.encode(), byref(_Field(size=ctypes.sizeof(c_size_t)))):
        raise Error(USAGE, "there is no kind of record %r" % kind)
    _call(library.longpole_trace_open, os.fsencode(path), None, byref(trace))
    record, value = _Record(size=ctypes.sizeof(_Record)), _Value(size=ctypes.sizeof(_Value))
    try:
        while _call(library.longpole_trace_next, trace, byref(record)) != END:
            if kind is not None and record.kind_name != kind.encode():
                continue
            if record.kind not in names:
                names[record.kind] = _field_names(library, record.kind)
            fields = {}
            for i, name in enumerate(names[record.kind]):
                if library.longpole_trace_field(trace, i, byref(value)) == 0:
                    fields[name] = _value(value)
            stream = library.longpole_trace_stream_name(trace, record.stream)
            yield Record(record.time_ns, (stream or b"").decode(errors="replace"), record.kind_name.decode(), fields)
    finally:
        library.longpole_trace_close(trace)


# ---- annotations ---------------------------------------------------------------------------------

class _Place(ctypes.Structure):
    _fields_ = [("name", TEXT), ("file", TEXT), ("line", ctypes.c_uint), ("reserved", ctypes.c_uint), ("id", U64)]


# (these keep the global lock: they take some nanoseconds, and giving it up would change the program)
class _Hooks(ctypes.Structure):
    _fields_ = [("bytes", U64), ("begin", ctypes.PYFUNCTYPE(None, POINTER(_Place), U64, U64)), ("end", ctypes.PYFUNCTYPE(None, POINTER(_Place))),
                ("state", ctypes.PYFUNCTYPE(None, POINTER(_Place), U64))]


_LINK = 1
_PLACES = {}  # the recorder keeps their addresses: they stay


def _hooks():
    """The recorder's functions; None: nobody records."""
    try:
        hooks = _library().longpole_annotate_hooks()
    except OSError:
        return None
    return hooks.contents if hooks else None


def _place(name, depth):
    frame = sys._getframe(depth)  # pylint: disable=protected-access
    key = name, frame.f_code.co_filename, frame.f_lineno
    place = _PLACES.get(key)
    if place is None:
        place = _PLACES.setdefault(key, _Place(name.encode(), os.fsencode(key[1]), key[2], 0, 0))
    return place


class _Machine(contextlib.ContextDecorator):
    def __init__(self, name, instance, state_name):
        self._names, self._instance, self._begun = (name, state_name), instance, []

    def __enter__(self):
        hooks, place = _hooks(), None
        if hooks is not None:
            place = _place(self._names[0], 2)
            instance = threading.get_native_id() if self._instance is None else self._instance
            hooks.begin(byref(place), instance & (1 << 64) - 1, _LINK)
            if self._names[1] is not None:
                hooks.state(byref(_place(self._names[1], 2)), 0)
        self._begun.append(place)
        return self

    def __exit__(self, *error):
        place, hooks = self._begun.pop(), _hooks()
        if place is not None and hooks is not None:
            hooks.end(byref(place))


def state(name):
    """with state("parse"): this thread does that, and inside of it whatever else; then what it did before. Also a decorator of functions.
    Not around an `await`: other tasks of the loop would be taken for it."""
    return _Machine(name, None, name)


def machine(name, instance=0):
    """with machine("encoder", 3): this thread is that state machine (longpole/annotate.h); enter(name) inside says what it does next."""
    return _Machine(name, instance, None)


def enter(name):
    """The machine that this thread is goes on in that state, until it enters another."""
    hooks = _hooks()
    if hooks is not None:
        hooks.state(byref(_place(name, 2)), 0)
