"""DLPack by C functions, for libraries whose array type offers a table of them (`__dlpack_c_exchange_api__`, DLPack 1.3).

A tensor comes and goes so in a tenth of the time that its Python methods take. Whatever is not plain here, another device,
a failure of the library, a subclass, is no error: None says to go the longer way, which has the messages. The layout of the
table is that of dlpack.h. `_native` includes this file.
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
    cdef cnp.ndarray array
    if table == NULL or getattr(value, "requires_grad", False) or (hasattr(value, "is_neg") and value.is_neg()):
        return None
    if table.from_object(<void *>value, &tensor) != 0:
        PyErr_Clear()
        return None
    cdef Borrowed owner = Borrowed.__new__(Borrowed)
    owner.versioned = tensor
    try:
        array = view_versioned(tensor, dtypes)
    except BufferError:
        return None
    cnp.set_array_base(array, owner)
    return array


def exchange_views(tuple given not None, object out, dict dtypes not None):
    """(arrays, outputs): NumPy's arrays and None as they are, others as views; None where one takes a closer look."""
    if out is None:
        arrays, outputs = views_of(given, dtypes), None
    elif type(out) is tuple:
        arrays, outputs = views_of(given, dtypes), views_of(out, dtypes)
        arrays = None if outputs is None else arrays
    else:
        return None
    return None if arrays is None else (arrays, outputs)


cdef tuple views_of(tuple given, dict dtypes):
    """Each of `given` for `exchange_views`; None where one takes a closer look."""
    cdef list found = []
    for value in given:
        if value is not None and type(value) is not cnp.ndarray:
            value = exchange_view(value, dtypes)
            if value is None:
                return None
        found.append(value)
    return tuple(found)


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
