"""DLPack by C functions, for array types that offer a table of them (`__dlpack_c_exchange_api__`, DLPack 1.3).

A tensor comes and goes so without the library's Python methods, which take several times as long. What is not plain
here, another device, a failure of the library, a subclass, is no error: it goes the longer way, which has the messages. The
layout of the table is that of dlpack.h. `_native` includes this file.
"""

from cpython.exc cimport PyErr_Clear
from cpython.ref cimport Py_DECREF

cdef extern from *:
    """
    typedef struct moegrad_dl_exchange {
        uint32_t major, minor;
        struct moegrad_dl_exchange *previous;
        void *allocate;
        int (*from_object)(void *object, moegrad_dl_versioned **tensor);
        int (*to_object)(moegrad_dl_versioned *tensor, void **object);
    } moegrad_dl_exchange;
    """
    ctypedef struct moegrad_dl_exchange:
        uint32_t major
        moegrad_dl_exchange *previous
        int (*from_object)(void *object, moegrad_dl_versioned **tensor) noexcept
        int (*to_object)(moegrad_dl_versioned *tensor, void **object) noexcept


cdef moegrad_dl_exchange *exchange_of(object kind):
    """The table that `kind` itself has, in a version that is understood; NULL without, and for its subclasses."""
    cdef moegrad_dl_exchange *table
    capsule = kind.__dict__.get("__dlpack_c_exchange_api__")
    if not PyCapsule_IsValid(capsule, "dlpack_exchange_api"):
        return NULL
    table = <moegrad_dl_exchange *>PyCapsule_GetPointer(capsule, "dlpack_exchange_api")
    while table != NULL and table.major != 1:
        table = table.previous
    return table


def exchange_view(object value, dict dtypes not None):
    """View `value` as a NumPy array without a copy, as `read_dlpack` does; None where that takes a closer look."""
    cdef moegrad_dl_versioned *tensor = NULL
    cdef moegrad_dl_exchange *table = exchange_of(type(value))
    cdef Borrowed owner
    cdef cnp.ndarray array
    if table == NULL or getattr(value, "requires_grad", False):
        return None
    negated = getattr(value, "is_neg", None)
    if callable(negated) and negated():
        return None
    owner = Borrowed.__new__(Borrowed)
    if table.from_object(<void *>value, &tensor) != 0:
        PyErr_Clear()
        return None
    owner.versioned = tensor
    try:
        array = view_versioned(tensor, dtypes)
    except BufferError:
        return None
    cnp.set_array_base(array, owner)
    return array


def exchange_views(tuple given not None, dict dtypes not None):
    """`given` with a view in place of each value that `exchange_view` has one for."""
    cdef list found = None
    cdef Py_ssize_t i
    for i in range(len(given)):
        value = given[i]
        if value is None or type(value) is cnp.ndarray:
            continue
        view = exchange_view(value, dtypes)
        if view is not None:
            found = list(given) if found is None else found
            found[i] = view
    return given if found is None else tuple(found)


def exchange_like(object kind, cnp.ndarray array not None, uint8_t code, uint8_t bits):
    """Dense `array` of DLPack type (`code`, `bits`) as a `kind`, on the same memory; None where that is not plain."""
    cdef moegrad_dl_exchange *table = exchange_of(kind)
    cdef void *made = NULL
    if table == NULL or not is_dense(array):
        return None
    if table.to_object(lend(array, code, bits), &made) != 0:  # which owns what is lent, whatever comes of it
        PyErr_Clear()
        return None
    found = <object>made
    Py_DECREF(found)
    return found
