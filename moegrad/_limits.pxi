"""What the machine's memory can do: limits for benchmarks, not a part of any operator. `_native` includes this file."""

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
