"""Random programs of loads, adds, stores, scalar moves and flags, against an order computed from sets, not clocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from .driver import NO_AUTO_SYNC, Array, Compiler, Library, out, put

WIDTH, BUFFERS, CHUNKS = 64, 4, 3
S, V, MTE2, MTE3 = "s", "v", "mte2", "mte3"
EVENTS = [(MTE2, V), (V, MTE2), (V, MTE3), (MTE3, V), (MTE2, MTE3), (MTE3, MTE2)]
EVENTS += [(S, V), (V, S), (S, MTE2), (MTE2, S), (S, MTE3), (MTE3, S)]
BARRIERS = [V, MTE2, MTE3]
Step = tuple[int, int, int, int]
Operation = tuple[str, int]  # pipe, and its place in the program


def touches(step: Step) -> tuple[str, set[str], set[str]]:
    """Pipe, what is read, what is written."""
    kind, a, b, _ = step
    if kind == 0:
        return MTE2, set(), {f"buffer {a}"}
    if kind in (1, 5):
        return V if kind == 1 else S, {f"buffer {b}"}, {f"buffer {a}"}
    return MTE3, {f"buffer {a}"}, {f"chunk {b}"}


@dataclass
class Orders:
    """What each pipe knows to be complete, and the findings of a program, in the model's names."""

    automatic: bool
    known: dict[str, set[Operation]] = field(default_factory=lambda: {pipe: set() for pipe in (S, *BARRIERS)})
    done: list[tuple[Operation, set[str], set[str]]] = field(default_factory=list)
    before: dict[Operation, set[Operation]] = field(default_factory=dict)
    tokens: dict[tuple[int, int], set[Operation]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def issued(self, pipe: str) -> set[Operation]:
        return {operation for operation, _, _ in self.done if operation[0] == pipe}

    def complete(self, operations: set[Operation]) -> set[Operation]:
        return operations.union(*(self.before[operation] for operation in operations))

    def issue(self, pipe: str) -> None:
        """An instruction starts after the scalar pipe issued it."""
        self.known[pipe] |= self.known[S]

    def flag(self, event: int, what: int, number: int) -> None:
        source, waiter = EVENTS[event]
        self.issue(source)
        self.issue(waiter)
        if what in (0, 2):
            if (event, number) in self.tokens:
                self.names.add("event-set-twice")
            self.tokens[event, number] = self.known[source] | self.complete(self.issued(source))
        if what in (1, 2):
            if (event, number) not in self.tokens:
                self.names.add("event-wait-without-set")
            self.known[waiter] |= self.tokens.pop((event, number), set())

    def operate(self, place: int, step: Step) -> None:
        pipe, reads, writes = touches(step)
        self.issue(pipe)
        for other, other_reads, other_writes in self.done:
            clash = writes & (other_reads | other_writes) or reads & other_writes
            if not clash or other in self.known[pipe] or pipe == other[0] == S:
                continue
            if self.automatic and (pipe == other[0] == V or S in (pipe, other[0])):
                self.known[pipe] |= self.complete({other})
            elif pipe == other[0]:
                self.names.add(f"missing-barrier-{pipe}")
            else:
                self.names.add(f"missing-event-{other[0]}-{pipe}")
        operation = (pipe, place)
        self.before[operation] = set(self.known[pipe])
        self.done.append((operation, reads, writes))

    def run(self, program: list[Step]) -> set[str]:
        for place, step in enumerate(program):
            if step[0] == 3:
                self.flag(*step[1:])
            elif step[0] == 4:
                self.known[BARRIERS[step[1]]] |= self.complete(self.issued(BARRIERS[step[1]]))
            else:
                self.operate(place, step)
        if self.tokens:
            self.names.add("event-left-set")
        return self.names


def in_program_order(program: list[Step], x: Array) -> Array:
    buffers = np.zeros((BUFFERS, WIDTH), np.float32)
    y = np.full((CHUNKS, WIDTH), np.nan, np.float32)
    for kind, a, b, _ in program:
        if kind == 0:
            buffers[a] = x[b]
        elif kind == 1:
            buffers[a] = buffers[b] + 1
        elif kind == 2:
            y[b] = buffers[a]
        elif kind == 5:
            buffers[a, 0] = buffers[b, 0]
    return y


buffers = st.integers(0, BUFFERS - 1)
chunks = st.integers(0, CHUNKS - 1)
steps = st.one_of(
    st.tuples(st.just(0), buffers, chunks, st.just(0)),
    st.tuples(st.just(1), buffers, buffers, st.just(0)),
    st.tuples(st.just(2), buffers, chunks, st.just(0)),
    st.tuples(st.just(5), buffers, buffers, st.just(0)),
    st.tuples(st.just(3), st.integers(0, 11), st.just(2), st.integers(0, 5)),
    st.tuples(st.just(3), st.integers(0, 11), st.integers(0, 1), st.integers(0, 1)),
    st.tuples(st.just(4), st.integers(0, 2), st.just(0), st.just(0)),
)


def mended(program: list[Step], automatic: bool) -> list[Step]:
    """The program's moves and adds with every flag and barrier that they need, and no other."""
    whole: list[Step] = []
    for step in program:
        if step[0] in (3, 4):
            continue
        for name in Orders(automatic).run([*whole, step]):
            parts = name.split("-")
            if parts[1] == "barrier":
                whole.append((4, BARRIERS.index(parts[2]), 0, 0))
            else:
                whole.append((3, EVENTS.index((parts[2], parts[3])), 2, 0))
        whole.append(step)
    return whole


@pytest.fixture(scope="module")
def model(compiler: Compiler) -> Library:
    return compiler.library()


def execute(model: Library, program: list[Step], seed: int, automatic: bool) -> tuple[set[str], Array, Array]:
    x = np.random.default_rng(0).integers(1, 1000, (CHUNKS, WIDTH)).astype(np.float32) * 16
    y = np.zeros((CHUNKS, WIDTH), np.float32)
    code = np.array([*program, (4, 0, 0, 0)], np.int32)
    tiling = np.int32(len(program)).tobytes()
    switches = 0 if automatic else NO_AUTO_SYNC
    arguments = (put(x), put(code), out(y, partial=True))
    result = model.run("orders", *arguments, tiling=tiling, seed=seed, switches=switches)
    return result.names, y, in_program_order(program, x)


# The scalar pipe learns of the load through the add that it waits for, and the store is issued after that.
THROUGH_S: list[Step] = [(0, 0, 0, 0), (3, 0, 2, 0), (1, 1, 0, 0), (5, 2, 1, 0), (2, 0, 0, 0)]


@settings(max_examples=250, deadline=None, derandomize=True)
@example(THROUGH_S, 0, True)
@example(THROUGH_S, 0, False)
@given(st.lists(steps, max_size=24), st.integers(0, 3), st.booleans())
def test_findings_are_those_of_an_order_computed_from_sets(
    model: Library, program: list[Step], seed: int, automatic: bool
) -> None:
    expected = Orders(automatic).run(program)
    names, y, right = execute(model, program, seed, automatic)
    assert names <= expected
    assert bool(names) == bool(expected)
    if not expected:
        np.testing.assert_array_equal(y, right)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(steps, max_size=24), st.integers(0, 3), st.booleans(), st.data())
def test_every_needed_flag_is_needed(
    model: Library, program: list[Step], seed: int, automatic: bool, data: st.DataObject
) -> None:
    whole = mended(program, automatic)
    names, y, right = execute(model, whole, seed, automatic)
    assert names == set()
    np.testing.assert_array_equal(y, right)
    orders = [i for i, step in enumerate(whole) if step[0] in (3, 4)]
    if orders:
        dropped = data.draw(st.sampled_from(orders))
        fewer = whole[:dropped] + whole[dropped + 1 :]
        expected = Orders(automatic).run(fewer)
        assert bool(execute(model, fewer, seed, automatic)[0]) == bool(expected)
