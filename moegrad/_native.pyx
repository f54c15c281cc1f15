# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The part of the run time that must be C: launching kernels, scanning indices, memory and DLPack.

Nothing here knows an operator. The Python modules beside it decide what is checked and in which order;
these functions answer single questions about arrays quickly.
"""

cimport numpy as cnp
from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

cnp.import_array()

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <cpuid.h>
    static int moegrad_cpu_avx2(void) {
        unsigned a, b, c, d;
        __builtin_cpu_init();
        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 29))) return 0;  /* F16C, nameless in older gcc */
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    static int moegrad_cpu_avx512(void) {
        return moegrad_cpu_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    }
    #else
    static int moegrad_cpu_avx2(void) { return 0; }
    static int moegrad_cpu_avx512(void) { return 0; }
    #endif
    """
    int moegrad_cpu_avx2() nogil
    int moegrad_cpu_avx512() nogil

cdef extern from *:
    bint multiply_overflows "__builtin_mul_overflow"(int64_t a, int64_t b, int64_t *product) nogil
    bint add_overflows "__builtin_add_overflow"(int64_t a, int64_t b, int64_t *total) nogil

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(PyTypeObject *subtype, cnp.dtype descr, int nd, cnp.npy_intp *dims,
                                cnp.npy_intp *strides, void *data, int flags, PyObject *obj)

cdef enum:
    MAX_DIMS = 32
    ALIGNMENT = 64        # a cache line, and the widest vector store
    STACK_WORDS = 128     # bitmaps of up to 8192 rows need no allocation
    DENSE = cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_ALIGNED


def cpu_variants():
    """Instruction-set variants this processor (and its operating system) can run, widest first."""
    names = ["baseline"]
    if moegrad_cpu_avx2():
        names.insert(0, "avx2")
    if moegrad_cpu_avx512():
        names.insert(0, "avx512")
    return tuple(names)


# ---- questions about the arguments of a call, answered from the tables of `contract` ----

def first_missing(tuple needs not None, tuple given not None):
    """Position of the first None in `given` that has to be there, or -1.

    needs[i] is -1 where i is optional, i where it is always needed, else the position of what makes it so.
    """
    cdef Py_ssize_t i, need
    for i in range(len(given)):
        need = needs[i] if given[i] is None else -1
        if need >= 0 and (need == i or given[need] is not None):
            return i
    return -1


def all_numpy(tuple given not None):
    """Whether everything in `given` is None or exactly a NumPy array, so that nothing has to be converted."""
    for value in given:
        if value is not None and type(value) is not cnp.ndarray:
            return False
    return True


def first_odd_dtype(tuple arrays not None, tuple allowed not None):
    """Position of the first array (None allowed) whose dtype is not among allowed[i], or -1."""
    cdef Py_ssize_t i
    for i in range(len(arrays)):
        if arrays[i] is not None and (<cnp.ndarray?>arrays[i]).dtype not in allowed[i]:
            return i
    return -1


def first_odd_shape(tuple arrays not None, tuple shapes not None, dict sizes not None):
    """Read sizes off shapes: position of the first array whose shape does not fit what is known, or -1.

    shapes[i] is a tuple of symbols, or None for any shape of M elements; arrays[i] may be None. `sizes` maps
    symbols to extents; symbols that it lacks are added.
    """
    cdef Py_ssize_t i, axis
    cdef cnp.npy_intp extent
    cdef cnp.ndarray array
    cdef tuple symbols
    for i in range(len(arrays)):
        if arrays[i] is None:
            continue
        array, symbols = arrays[i], shapes[i]
        if symbols is None:
            if cnp.PyArray_SIZE(array) != <cnp.npy_intp>sizes["M"]:
                return i
            continue
        if cnp.PyArray_NDIM(array) != len(symbols):
            return i
        for axis in range(len(symbols)):
            extent = cnp.PyArray_DIM(array, <int>axis)
            known = sizes.get(symbols[axis])
            if known is None:
                sizes[symbols[axis]] = extent
            elif <object>extent != known:
                return i
    return -1


def unfit_for_output(cnp.ndarray array not None):
    """What `array` would have to be so that a kernel can write to it; None when it is."""
    cdef int flags = cnp.PyArray_FLAGS(array)
    if not flags & cnp.NPY_ARRAY_C_CONTIGUOUS:
        return "a C-contiguous array"
    if not flags & cnp.NPY_ARRAY_WRITEABLE:
        return "a writeable array"
    return None if flags & cnp.NPY_ARRAY_ALIGNED else "an aligned array"


# ---- memory and indices ----

cdef inline bint is_dense(cnp.ndarray array):
    return (cnp.PyArray_FLAGS(array) & DENSE) == DENSE


def empty_aligned(tuple shape not None, cnp.dtype dtype not None):
    """An uninitialised C-contiguous array whose data start on a cache line, for streaming stores."""
    cdef cnp.npy_intp dims[MAX_DIMS]
    cdef Py_ssize_t axis, rank = len(shape)
    cdef int64_t total = dtype.itemsize
    cdef bint fits = True
    if rank > MAX_DIMS:
        raise ValueError(f"at most {MAX_DIMS} dimensions, got {rank}")
    for axis in range(rank):
        dims[axis] = shape[axis]
        fits = fits and not multiply_overflows(total, dims[axis], &total)
    if not fits or add_overflows(total, ALIGNMENT, &total):
        raise MemoryError(f"an array of shape {shape} and dtype {dtype} does not fit in the address space")
    cdef cnp.ndarray block = cnp.PyArray_EMPTY(1, &total, cnp.NPY_UINT8, 0)
    cdef char *start = <char *>cnp.PyArray_DATA(block)
    start += (ALIGNMENT - <uintptr_t>start % ALIGNMENT) % ALIGNMENT
    Py_INCREF(dtype)  # PyArray_NewFromDescr takes one reference
    cdef cnp.ndarray array = PyArray_NewFromDescr(
        <PyTypeObject *>cnp.ndarray, dtype, <int>rank, dims, NULL, start, cnp.NPY_ARRAY_CARRAY, NULL)
    cnp.set_array_base(array, block)
    return array


cdef inline void bounds(cnp.ndarray array, uintptr_t *low, uintptr_t *high) noexcept:
    """The half-open range of bytes that `array` spans; [0, 0) without elements."""
    cdef int axis
    cdef cnp.npy_intp span
    low[0] = high[0] = 0
    if cnp.PyArray_SIZE(array) == 0:
        return
    low[0] = <uintptr_t>cnp.PyArray_DATA(array)
    high[0] = low[0] + cnp.PyArray_ITEMSIZE(array)
    for axis in range(cnp.PyArray_NDIM(array)):
        span = cnp.PyArray_STRIDE(array, axis) * (cnp.PyArray_DIM(array, axis) - 1)
        if span > 0:
            high[0] += span
        else:
            low[0] += span


def overlapping_bounds(cnp.ndarray array not None, tuple others not None):
    """Positions in `others` (None allowed) whose span of memory meets the span of `array`; usually ()."""
    cdef uintptr_t low, high, other_low, other_high
    cdef Py_ssize_t position
    found = ()
    bounds(array, &low, &high)
    for position in range(len(others)):
        if others[position] is None:
            continue
        bounds(<cnp.ndarray?>others[position], &other_low, &other_high)
        if low < other_high and other_low < high:
            found += (position,)
    return found


def find_bad_index(cnp.ndarray indices not None, int64_t low, int64_t high, bint distinct):
    """Search int32 `indices`, in C order, for the first value outside [low, high) and the first repeated one.

    Returns None when there is neither; else (position of the first value out of range, position of the first
    repetition), -1 where there is none. A value out of range ends the search. Negative values may repeat.
    """
    cdef uint64_t local[STACK_WORDS]
    cdef uint64_t *seen = local
    cdef int64_t words = (min(high, <int64_t>0x80000000) + 63) >> 6 if distinct and high > 0 else 0
    cdef Py_ssize_t outside = -1, repeated = -1
    if cnp.PyArray_TYPE(indices) != cnp.NPY_INT32:
        raise TypeError(f"find_bad_index: expected int32, got {indices.dtype}")
    if not is_dense(indices):
        indices = cnp.PyArray_NewCopy(indices, cnp.NPY_CORDER)
    if words <= STACK_WORDS:
        memset(local, 0, <size_t>words * sizeof(uint64_t))
    else:
        seen = <uint64_t *>calloc(<size_t>words, sizeof(uint64_t))
        if seen == NULL:
            raise MemoryError(f"no memory to check {indices.size} indices for repetition")
    with nogil:
        scan(<const int32_t *>cnp.PyArray_DATA(indices), cnp.PyArray_SIZE(indices), low, high,
             seen if distinct else NULL, &outside, &repeated)
    if words > STACK_WORDS:
        free(seen)
    return None if outside < 0 and repeated < 0 else (outside, repeated)


cdef void scan(const int32_t *indices, Py_ssize_t count, int64_t low, int64_t high, uint64_t *seen,
               Py_ssize_t *outside, Py_ssize_t *repeated) noexcept nogil:
    """The loop of find_bad_index; `seen` is NULL when values may repeat."""
    cdef Py_ssize_t i
    cdef int64_t value
    cdef uint64_t bit
    for i in range(count):
        value = indices[i]
        if value < low or value >= high:
            outside[0] = i
            return
        if seen == NULL or value < 0:
            continue
        bit = <uint64_t>1 << (value & 63)
        if seen[value >> 6] & bit and repeated[0] < 0:
            repeated[0] = i
        seen[value >> 6] |= bit


include "_call.pxi"
include "_dlpack.pxi"
include "_exchange.pxi"


cdef extern from "moegrad_machine.h":
    int64_t machine_cache_bytes "last_level_cache_bytes"() nogil


def last_level_cache_bytes():
    """Bytes of the last-level cache that one core can use, as the kernels' choice of store policy sees it."""
    return machine_cache_bytes()


include "_limits.pxi"
