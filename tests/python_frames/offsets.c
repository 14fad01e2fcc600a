// Prints "name offset" of structures of CPython, from the headers of one version. The names are those of PythonLayout.
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#endif
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>

#define TELL(name, type, member) printf("%s %zu\n", name, offsetof(type, member))

int main(void) {
  TELL("interpreters", struct pyruntimestate, interpreters.head);
  TELL("interpreter_next", PyInterpreterState, next);
  TELL("thread_next", PyThreadState, next);
  TELL("thread_interpreter", PyThreadState, interp);
  TELL("thread_id", PyThreadState, thread_id);
  TELL("code_first_line", PyCodeObject, co_firstlineno);
  TELL("code_file", PyCodeObject, co_filename);
  TELL("code_name", PyCodeObject, co_name);
  TELL("object_type", PyObject, ob_type);
  TELL("type_name", PyTypeObject, tp_name);
  TELL("bytes_size", PyVarObject, ob_size);
  TELL("bytes_data", PyBytesObject, ob_sval);
  TELL("tuple_size", PyVarObject, ob_size);
  TELL("tuple_items", PyTupleObject, ob_item);
  TELL("string_length", PyASCIIObject, length);
  TELL("string_state", PyASCIIObject, state);
  printf("string_ascii %zu\n", sizeof(PyASCIIObject));
  printf("string_other %zu\n", sizeof(PyCompactUnicodeObject));
#if PY_VERSION_HEX < 0x030c0000
  TELL("runtime_gil", struct pyruntimestate, ceval.gil);
#else
  TELL("interpreter_gil", PyInterpreterState, ceval.gil);
#endif
  TELL("gil_holder", struct _gil_runtime_state, last_holder);
  TELL("gil_locked", struct _gil_runtime_state, locked);
#if PY_VERSION_HEX < 0x030b0000
  TELL("threads", PyInterpreterState, tstate_head);
  TELL("thread_frame", PyThreadState, frame);
  TELL("frame_back", PyFrameObject, f_back);
  TELL("frame_code", PyFrameObject, f_code);
  TELL("frame_instruction", PyFrameObject, f_lasti);
  TELL("code_local_names", PyCodeObject, co_varnames);
#else
  TELL("threads", PyInterpreterState, threads.head);
  TELL("native_id", PyThreadState, native_thread_id);
  TELL("frame_back", _PyInterpreterFrame, previous);
  TELL("frame_owner", _PyInterpreterFrame, owner);
  TELL("code_lines", PyCodeObject, co_linetable);
  TELL("code_instructions", PyCodeObject, co_code_adaptive);
  TELL("code_local_names", PyCodeObject, co_localsplusnames);
  TELL("code_local_kinds", PyCodeObject, co_localspluskinds);
#endif
#if PY_VERSION_HEX < 0x030a0000
  TELL("code_lines", PyCodeObject, co_lnotab);
#elif PY_VERSION_HEX < 0x030b0000
  TELL("code_lines", PyCodeObject, co_linetable);
  TELL("frame_line", PyFrameObject, f_lineno);
#elif PY_VERSION_HEX < 0x030d0000
  TELL("thread_frame", PyThreadState, cframe);
  TELL("cframe_frame", _PyCFrame, current_frame);
  TELL("frame_code", _PyInterpreterFrame, f_code);
  TELL("frame_instruction", _PyInterpreterFrame, prev_instr);
#else
  TELL("thread_frame", PyThreadState, current_frame);
  TELL("frame_code", _PyInterpreterFrame, f_executable);
  TELL("frame_instruction", _PyInterpreterFrame, instr_ptr);
#endif
#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
  TELL("code_copies", PyCodeObject, co_tlbc);
  TELL("frame_copy_index", _PyInterpreterFrame, tlbc_index);
#endif
  return 0;
}
