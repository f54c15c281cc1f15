"""The way of a call that was seen before, from its arguments to its kernel. `_native` includes this file.

What is wrong with a call depends on little: types, dtypes, shapes and attributes, which `signature` puts in a few
words to remember calls by; and the values of indices and the memory of outputs, which are looked at each time.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.list cimport PyList_CheckExact
from cpython.tuple cimport PyTuple_CheckExact

ctypedef int (*kernel_t)(void **tensors, const int64_t *sizes, int num_threads) noexcept nogil

cdef enum:
    MAX_ARGUMENTS = 16
    SIGNATURE_WORDS = 128
    ABSENT = -2           # no number of a dtype; and the kinds of attributes that are there
    BOOL = 1
    INT = 2
    TUPLE = 3

cdef struct Words:
    int64_t at[SIGNATURE_WORDS]
    int count


def signature(tuple attributes not None, tuple arrays not None, object out):
    """Bytes that two calls share only if attributes agree in kind and value, and arrays in number of dtype and shape.

    None for what needs a closer look each time: an array that is not exactly NumPy's or in another byte order than
    this machine's, an attribute that is not exactly None, a bool, an int or a tuple or list of these, an `out` that
    is neither None nor a pair.
    """
    cdef Words words
    words.count = 0
    if not add_attributes(&words, attributes) or not add_arrays(&words, arrays):
        return None
    if out is not None:
        if not PyTuple_CheckExact(out) or len(<tuple>out) != 2 or not add_arrays(&words, <tuple>out):
            return None
    if words.count == SIGNATURE_WORDS:
        return None
    return PyBytes_FromStringAndSize(<char *>words.at, words.count * sizeof(int64_t))


cdef inline void add(Words *words, int64_t word) noexcept:
    """Appends a word where there is room; a signature that fills it may lack words and is none."""
    if words.count < SIGNATURE_WORDS:
        words.at[words.count] = word
        words.count += 1


cdef bint add_attributes(Words *words, tuple attributes):
    """Appends attributes with their kinds and, for tuples, lengths; False where one has no place here."""
    cdef int overflow = 0
    add(words, TUPLE)
    add(words, len(attributes))
    for value in attributes:
        if words.count == SIGNATURE_WORDS:  # and tuples in tuples come to an end
            return False
        if value is None:
            add(words, ABSENT)
        elif value is True or value is False:
            add(words, BOOL)
            add(words, value is True)
        elif PyLong_CheckExact(value):
            add(words, INT)
            add(words, PyLong_AsLongLongAndOverflow(value, &overflow))
            if overflow:
                return False
        elif not is_plain_sequence(value) or not add_attributes(words, tuple(value)):
            return False
    return True


cdef inline bint is_plain_sequence(object value):
    """Whether `value` is a list, a tuple or a subclass (torch.Size) whose elements are those of the tuple."""
    return PyTuple_CheckExact(value) or PyList_CheckExact(value) or (
        isinstance(value, tuple) and type(value).__iter__ is tuple.__iter__)


cdef bint add_arrays(Words *words, tuple arrays):
    """Appends how many there are, and of each number of dtype and shape or that it is absent; False for an odd one."""
    cdef int axis
    cdef cnp.ndarray array
    add(words, len(arrays))
    for value in arrays:
        if value is None:
            add(words, ABSENT)
            continue
        if not cnp.PyArray_CheckExact(value):
            return False
        array = <cnp.ndarray>value
        if not cnp.PyArray_ISNOTSWAPPED(array):
            return False
        add(words, cnp.PyArray_TYPE(array))
        add(words, cnp.PyArray_NDIM(array))
        for axis in range(cnp.PyArray_NDIM(array)):
            add(words, cnp.PyArray_DIM(array, axis))
    return True


@cython.boundscheck(True)
def find_bad_values(tuple arrays not None, tuple values not None):
    """Search index arrays for values that may not be there.

    `values` has rows (position in `arrays`, low, high, distinct). Returns None, or (row of `values`, what
    find_bad_index says) for the first array that has any.
    """
    cdef Py_ssize_t row
    for row in range(len(values)):
        position, low, high, distinct = <tuple?>values[row]
        bad = find_bad_index(<cnp.ndarray?>arrays[<Py_ssize_t>position], low, high, distinct)
        if bad is not None:
            return row, bad
    return None


def fit_for_output(tuple outputs not None, tuple inputs not None):
    """Whether a kernel can write to `outputs` (None allowed): dense, writeable, each in a span of memory of its own.

    False says only that some span is shared; the arrays in it may still be apart.
    """
    cdef uintptr_t low[2 * MAX_ARGUMENTS]
    cdef uintptr_t high[2 * MAX_ARGUMENTS]
    cdef Py_ssize_t count = 0, others = 0, i, j
    if len(inputs) > MAX_ARGUMENTS or len(outputs) > MAX_ARGUMENTS:
        raise ValueError(f"fit_for_output: at most {MAX_ARGUMENTS} inputs and outputs")
    for array in inputs:
        if array is not None:
            bounds(<cnp.ndarray?>array, &low[count], &high[count])
            count += 1
    others = count
    for array in outputs:
        if array is not None:
            if cnp.PyArray_FLAGS(<cnp.ndarray?>array) & cnp.NPY_ARRAY_CARRAY != cnp.NPY_ARRAY_CARRAY:
                return False
            bounds(<cnp.ndarray>array, &low[count], &high[count])
            count += 1
    for i in range(others, count):
        for j in range(i):
            if low[i] < high[j] and low[j] < high[i]:
                return False
    return True


@cython.boundscheck(True)
def launch(object capsule, tuple arrays not None, tuple order not None, tuple sizes not None, int num_threads,
           int times=1):
    """Run a kernel with the GIL released, once or, to time it alone, several `times`.

    `capsule` is a value of a kernel module's KERNELS. Its tensors, in the order of its TENSORS, are arrays[i] for i in
    `order`; the kernel gets a copy of one that is not C-contiguous and aligned. `sizes` are integers in the order
    of its SIZES. MemoryError when there was no memory for a copy or for the kernel's scratch: nothing has been
    written then. The caller vouches for dtypes and shapes, and for outputs that need no copy.
    """
    cdef void *pointers[MAX_ARGUMENTS]
    cdef int64_t extents[MAX_ARGUMENTS]
    cdef Py_ssize_t i, count = len(order), symbols = len(sizes)
    cdef int status = 0
    cdef cnp.ndarray array
    cdef kernel_t kernel = <kernel_t>PyCapsule_GetPointer(capsule, "moegrad.kernel")
    copies = ()
    if count > MAX_ARGUMENTS or symbols > MAX_ARGUMENTS:
        raise ValueError(f"launch: at most {MAX_ARGUMENTS} tensors and sizes, got {count} and {symbols}")
    for i in range(count):
        array = <cnp.ndarray?>arrays[<Py_ssize_t>order[i]]
        if not is_dense(array):
            array = cnp.PyArray_NewCopy(array, cnp.NPY_CORDER)
            copies += (array,)
        pointers[i] = cnp.PyArray_DATA(array)
    for i in range(symbols):
        extents[i] = sizes[i]
    with nogil:
        for _ in range(times):
            status |= kernel(pointers, extents, num_threads)
    if status != 0:
        raise MemoryError("a kernel could not allocate its scratch memory; no output was written")
