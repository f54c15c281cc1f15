"""DLPack, both ways: a part of `_native`, which includes this file.

NumPy could do most of it but knows no bfloat16 there. Tensors are read from capsules with and without a
version and offered as the consumer asks. Layouts are those of dlpack.h, version 1.
"""

from cpython.pycapsule cimport PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef extern from *:
    """
    typedef struct { int32_t device_type, device_id; } moegrad_dl_device;
    typedef struct { uint8_t code, bits; uint16_t lanes; } moegrad_dl_dtype;
    typedef struct {
        void *data; moegrad_dl_device device; int32_t ndim; moegrad_dl_dtype dtype;
        int64_t *shape, *strides; uint64_t byte_offset;
    } moegrad_dl_tensor;
    typedef struct moegrad_dl_managed {
        moegrad_dl_tensor tensor; void *context; void (*deleter)(struct moegrad_dl_managed *);
    } moegrad_dl_managed;
    typedef struct moegrad_dl_versioned {
        uint32_t major, minor; void *context; void (*deleter)(struct moegrad_dl_versioned *);
        uint64_t flags; moegrad_dl_tensor tensor;
    } moegrad_dl_versioned;
    """
    ctypedef struct moegrad_dl_device:
        int32_t device_type
        int32_t device_id

    ctypedef struct moegrad_dl_dtype:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    ctypedef struct moegrad_dl_tensor:
        void *data
        moegrad_dl_device device
        int32_t ndim
        moegrad_dl_dtype dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset

    ctypedef struct moegrad_dl_managed:
        moegrad_dl_tensor tensor
        void *context
        void (*deleter)(moegrad_dl_managed *) noexcept

    ctypedef struct moegrad_dl_versioned:
        uint32_t major
        uint32_t minor
        void *context
        void (*deleter)(moegrad_dl_versioned *) noexcept
        uint64_t flags
        moegrad_dl_tensor tensor

cdef enum:
    DL_CPU = 1
    DL_READ_ONLY = 1

cdef int64_t nowhere  # stands in for the NULL that tensors without elements may have as data


cdef class Borrowed:
    """Owner of a DLPack tensor, from a capsule or a C function: gives it back when the last view dies."""
    cdef moegrad_dl_managed *plain
    cdef moegrad_dl_versioned *versioned

    def __dealloc__(self):
        if self.plain != NULL and self.plain.deleter != NULL:
            self.plain.deleter(self.plain)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


def read_dlpack(object capsule, dict dtypes not None):
    """View the tensor of a DLPack capsule (versioned or not) as a NumPy array, without a copy.

    `dtypes` maps (DLPack type code, bits) to a NumPy dtype, so that bfloat16 can be named. The capsule is
    consumed only on success. BufferError: not a fresh capsule, another device than the CPU, or an element
    type not in `dtypes`.
    """
    cdef Borrowed owner = Borrowed.__new__(Borrowed)
    cdef moegrad_dl_managed *plain
    cdef moegrad_dl_versioned *versioned
    cdef cnp.ndarray array
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        versioned = <moegrad_dl_versioned *>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        array = view_versioned(versioned, dtypes)
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        owner.versioned = versioned
    elif PyCapsule_IsValid(capsule, "dltensor"):
        plain = <moegrad_dl_managed *>PyCapsule_GetPointer(capsule, "dltensor")
        array = view_tensor(&plain.tensor, dtypes, True)
        PyCapsule_SetName(capsule, "used_dltensor")
        owner.plain = plain
    else:
        raise BufferError("__dlpack__ returned no DLPack capsule, or one that was used already")
    cnp.set_array_base(array, owner)
    return array


cdef cnp.ndarray view_versioned(moegrad_dl_versioned *versioned, dict dtypes):
    """`view_tensor` for a tensor with a version."""
    if versioned.major != 1:
        raise BufferError(f"DLPack version {versioned.major}.{versioned.minor} is not understood; 1.x is")
    return view_tensor(&versioned.tensor, dtypes, not versioned.flags & DL_READ_ONLY)


cdef cnp.ndarray view_tensor(moegrad_dl_tensor *tensor, dict dtypes, bint writeable):
    """A NumPy array on the memory of `tensor`, not yet owning anything."""
    cdef cnp.npy_intp dims[MAX_DIMS]
    cdef cnp.npy_intp steps[MAX_DIMS]
    cdef int axis
    cdef int flags = cnp.NPY_ARRAY_WRITEABLE if writeable else 0
    key = (tensor.dtype.code, tensor.dtype.bits)
    if tensor.device.device_type != DL_CPU:
        raise BufferError(f"the tensor is on DLPack device {tensor.device.device_type}, not on the CPU")
    if tensor.dtype.lanes != 1 or key not in dtypes:
        raise BufferError(f"unknown DLPack type: code {key[0]}, {key[1]} bits, {tensor.dtype.lanes} lanes")
    if tensor.ndim > MAX_DIMS:
        raise BufferError(f"at most {MAX_DIMS} dimensions, got {tensor.ndim}")
    dtype = dtypes[key]
    for axis in range(tensor.ndim):
        dims[axis] = tensor.shape[axis]
        if tensor.strides != NULL:
            steps[axis] = tensor.strides[axis] * <cnp.npy_intp>dtype.itemsize
    cdef char *data = <char *>&nowhere if tensor.data == NULL else <char *>tensor.data + tensor.byte_offset
    Py_INCREF(dtype)
    return PyArray_NewFromDescr(
        <PyTypeObject *>cnp.ndarray, dtype, tensor.ndim, dims, steps if tensor.strides != NULL else NULL,
        data, flags, NULL)


cdef void release_plain(moegrad_dl_managed *managed) noexcept with gil:
    Py_XDECREF(<PyObject *>managed.context)
    free(managed)


cdef void release_versioned(moegrad_dl_versioned *managed) noexcept with gil:
    Py_XDECREF(<PyObject *>managed.context)
    free(managed)


cdef void drop_capsule(object capsule) noexcept:
    """Destructor of a capsule that nobody consumed."""
    if PyCapsule_IsValid(capsule, "dltensor"):
        release_plain(<moegrad_dl_managed *>PyCapsule_GetPointer(capsule, "dltensor"))
    elif PyCapsule_IsValid(capsule, "dltensor_versioned"):
        release_versioned(<moegrad_dl_versioned *>PyCapsule_GetPointer(capsule, "dltensor_versioned"))


cdef moegrad_dl_versioned *lend(cnp.ndarray array, uint8_t code, uint8_t bits) except NULL:
    """A versioned tensor on the memory of dense `array`, which it holds on to until it is given back."""
    cdef size_t extra = 2 * cnp.PyArray_NDIM(array) * sizeof(int64_t)
    cdef moegrad_dl_versioned *versioned = <moegrad_dl_versioned *>calloc(1, sizeof(moegrad_dl_versioned) + extra)
    if versioned == NULL:
        raise MemoryError("no memory for a DLPack header")
    versioned.major, versioned.deleter = 1, release_versioned
    describe(array, code, bits, &versioned.tensor, <int64_t *>(versioned + 1))
    versioned.context = <void *>array
    Py_INCREF(array)
    return versioned


cdef void describe(cnp.ndarray array, uint8_t code, uint8_t bits, moegrad_dl_tensor *tensor, int64_t *extents) noexcept:
    """Fill in `tensor` for dense `array`; shape and strides (in elements, row-major) go to `extents`."""
    cdef int axis, rank = cnp.PyArray_NDIM(array)
    cdef int64_t stride = 1
    tensor.data = cnp.PyArray_DATA(array)
    tensor.device.device_type = DL_CPU
    tensor.ndim = rank
    tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = code, bits, 1
    tensor.shape, tensor.strides = extents, extents + rank
    for axis in range(rank - 1, -1, -1):
        extents[axis] = cnp.PyArray_DIM(array, axis)
        extents[rank + axis] = stride
        stride *= extents[axis]


cdef class Exported:
    """A dense NumPy array offered through DLPack under a stated element type; NumPy cannot offer bfloat16."""
    cdef cnp.ndarray array
    cdef uint8_t code
    cdef uint8_t bits

    def __cinit__(self, cnp.ndarray array not None, int code, int bits):
        if not is_dense(array):
            raise ValueError("Exported: expected a dense array")
        self.array, self.code, self.bits = array, code, bits

    def __dlpack_device__(self):
        return (DL_CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        cdef moegrad_dl_managed *plain
        cdef moegrad_dl_versioned *versioned
        cdef cnp.ndarray array = self.array.copy() if copy else self.array
        if dl_device is not None and tuple(dl_device) != (DL_CPU, 0):
            raise BufferError(f"the array is on the CPU, DLPack device (1, 0), not on {dl_device}")
        if max_version is not None and max_version[0] >= 1:
            versioned = lend(array, self.code, self.bits)
            return PyCapsule_New(versioned, "dltensor_versioned", <void (*)(object) noexcept>drop_capsule)
        cdef size_t extra = 2 * cnp.PyArray_NDIM(array) * sizeof(int64_t)
        plain = <moegrad_dl_managed *>calloc(1, sizeof(moegrad_dl_managed) + extra)
        if plain == NULL:
            raise MemoryError("no memory for a DLPack header")
        plain.deleter = release_plain
        describe(array, self.code, self.bits, &plain.tensor, <int64_t *>(plain + 1))
        plain.context = <void *>array
        Py_INCREF(array)
        return PyCapsule_New(plain, "dltensor", <void (*)(object) noexcept>drop_capsule)
