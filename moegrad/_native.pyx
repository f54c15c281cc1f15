# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The part of the run time that must be C: launching kernels, scanning indices, memory and DLPack.

Nothing here knows an operator. The Python modules beside it decide what is checked and in which order;
these functions answer single questions about arrays quickly.
"""

cimport numpy as cnp
from cpython.object cimport PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer
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

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(PyTypeObject *subtype, cnp.dtype descr, int nd, cnp.npy_intp *dims,
                                cnp.npy_intp *strides, void *data, int flags, PyObject *obj)

ctypedef int (*kernel_t)(void **tensors, const int64_t *sizes, int num_threads) noexcept nogil

cdef enum:
    MAX_ARGUMENTS = 16
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


# ---- memory and kernels ----

def launch(object capsule, tuple tensors not None, tuple sizes not None, int num_threads):
    """Run a kernel with the GIL released.

    `capsule` is a value of a kernel module's KERNELS; `tensors` are dense arrays in the order of its TENSORS
    and `sizes` integers in the order of its SIZES. MemoryError when the kernel could not get scratch memory:
    nothing has been written then. The caller vouches for dtypes, shapes and density.
    """
    cdef void *pointers[MAX_ARGUMENTS]
    cdef int64_t extents[MAX_ARGUMENTS]
    cdef Py_ssize_t i, count = len(tensors), symbols = len(sizes)
    cdef int status
    cdef kernel_t kernel = <kernel_t>PyCapsule_GetPointer(capsule, "moegrad.kernel")
    if count > MAX_ARGUMENTS or symbols > MAX_ARGUMENTS:
        raise ValueError(f"launch: at most {MAX_ARGUMENTS} tensors and sizes, got {count} and {symbols}")
    for i in range(count):
        pointers[i] = cnp.PyArray_DATA(<cnp.ndarray?>tensors[i])
    for i in range(symbols):
        extents[i] = sizes[i]
    with nogil:
        status = kernel(pointers, extents, num_threads)
    if status != 0:
        raise MemoryError("a kernel could not allocate its scratch memory; no output was written")


def nbytes(tuple arrays not None):
    """Bytes of all arrays together; None counts as zero."""
    cdef int64_t total = 0
    for array in arrays:
        if array is not None:
            total += cnp.PyArray_NBYTES(<cnp.ndarray?>array)
    return total


def dense(tuple arrays not None):
    """`arrays` itself when all are C-contiguous and aligned; else a tuple with copies where they are not."""
    cdef bint ready = True
    for array in arrays:
        ready = ready and is_dense(<cnp.ndarray?>array)
    if ready:
        return arrays
    return tuple([a if is_dense(a) else cnp.PyArray_NewCopy(a, cnp.NPY_CORDER) for a in arrays])


cdef inline bint is_dense(cnp.ndarray array):
    return (cnp.PyArray_FLAGS(array) & DENSE) == DENSE


def empty_aligned(tuple shape not None, cnp.dtype dtype not None):
    """An uninitialised C-contiguous array whose data start on a cache line, for streaming stores."""
    cdef cnp.npy_intp dims[MAX_DIMS]
    cdef Py_ssize_t axis, rank = len(shape)
    cdef object size = dtype.itemsize
    cdef cnp.npy_intp total
    if rank > MAX_DIMS:
        raise ValueError(f"at most {MAX_DIMS} dimensions, got {rank}")
    for axis in range(rank):
        dims[axis] = shape[axis]
        size = size * shape[axis]
    if size > <object>(<int64_t>0x7fffffffffffff00):
        raise MemoryError(f"an array of shape {shape} and dtype {dtype} does not fit in the address space")
    total = size + ALIGNMENT
    cdef cnp.ndarray block = cnp.PyArray_EMPTY(1, &total, cnp.NPY_UINT8, 0)
    cdef char *start = <char *>cnp.PyArray_DATA(block)
    start += (ALIGNMENT - <uintptr_t>start % ALIGNMENT) % ALIGNMENT
    Py_INCREF(dtype)  # PyArray_NewFromDescr takes one reference
    cdef cnp.ndarray array = PyArray_NewFromDescr(
        <PyTypeObject *>cnp.ndarray, dtype, <int>rank, dims, NULL, start, cnp.NPY_ARRAY_CARRAY, NULL)
    cnp.set_array_base(array, block)
    return array


cdef void bounds(cnp.ndarray array, uintptr_t *low, uintptr_t *high) noexcept:
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


include "_dlpack.pxi"


cdef extern from "moegrad_machine.h":
    int64_t machine_cache_bytes "last_level_cache_bytes"() nogil


def last_level_cache_bytes():
    """Bytes of the last-level cache that one core can use, as the kernels' choice of store policy sees it."""
    return machine_cache_bytes()


# ---- what the machine's memory can do: limits for benchmarks, not a part of any operator ----

cdef extern from "moegrad_limits.h" nogil:
    void limit_traffic(char *to, int64_t written, const char *source, int64_t read, int num_threads)
    void limit_pages(char *to, const char *source, int64_t nbytes, int num_threads)
    void limit_rows(char *to, const char *source, int64_t row_bytes, const int32_t *index, int64_t count,
                    int num_threads)


def stream_copy(cnp.ndarray target not None, cnp.ndarray source not None, int num_threads, bint pages=False):
    """Copies `source` to `target` past the caches, in order; or with `pages` a line of each of four pages in turn."""
    if cnp.PyArray_NBYTES(source) != cnp.PyArray_NBYTES(target):
        raise ValueError(f"stream_copy: expected two arrays of one size, got {source.nbytes} and {target.nbytes} bytes")
    if not is_dense(source) or not is_dense(target):
        raise ValueError("stream_copy: expected contiguous arrays")
    if not pages:
        stream_traffic(target, source, num_threads)
        return
    cdef char *to = <char *>cnp.PyArray_DATA(target)
    cdef const char *origin = <const char *>cnp.PyArray_DATA(source)
    with nogil:
        limit_pages(to, origin, cnp.PyArray_NBYTES(source), num_threads)


def stream_traffic(cnp.ndarray target not None, cnp.ndarray source not None, int num_threads):
    """Reads all of `source` and writes all of `target`, past the caches and both in order.

    Where `target` is larger each piece of `source` is written several times over; where it is smaller, some of
    `source` is read only.
    """
    cdef int64_t written = cnp.PyArray_NBYTES(target), read = cnp.PyArray_NBYTES(source)
    if not is_dense(source) or not is_dense(target):
        raise ValueError("stream_traffic: expected contiguous arrays")
    cdef char *to = <char *>cnp.PyArray_DATA(target)
    cdef const char *origin = <const char *>cnp.PyArray_DATA(source)
    with nogil:
        limit_traffic(to, written, origin, read, num_threads)


def stream_rows(cnp.ndarray target not None, cnp.ndarray source not None, cnp.ndarray index not None, int num_threads):
    """Copies row index[i] of `source` to row index[i] of `target` for i in order, past the caches.

    Both are (M, H) of one dtype, and `index` is (N,) int32 with values in [0, M).
    """
    if not is_dense(source) or not is_dense(target) or not is_dense(index):
        raise ValueError("stream_rows: expected contiguous arrays")
    if (<object>source).shape != (<object>target).shape or cnp.PyArray_TYPE(index) != cnp.NPY_INT32:
        raise ValueError("stream_rows: expected two arrays of one shape and int32 indices")
    if find_bad_index(index, 0, cnp.PyArray_DIM(source, 0), False) is not None:
        raise ValueError("stream_rows: an index is out of range")
    cdef int64_t row_bytes = cnp.PyArray_NBYTES(source) // max(<int64_t>1, cnp.PyArray_DIM(source, 0))
    cdef int64_t count = cnp.PyArray_SIZE(index)
    cdef char *to = <char *>cnp.PyArray_DATA(target)
    cdef const char *origin = <const char *>cnp.PyArray_DATA(source)
    cdef const int32_t *rows = <const int32_t *>cnp.PyArray_DATA(index)
    with nogil:
        limit_rows(to, origin, row_bytes, rows, count, num_threads)
