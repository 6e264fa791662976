"""How hybridsim compiles: state machines, their methods, and the loops that drive them.

A policy, a device, a cache is a NamedTuple marked @state_machine: its fields are numpy arrays (the
state), numbers (the parameters) and other state machines; its @method functions are the behaviour.
A @loop is specialised on the class of its argument, so `policy.touch(page)` is a direct call.
With NUMBA_DISABLE_JIT=1 the same source is ordinary Python: step into it, measure its coverage.

Numba would pass a NamedTuple by value: a machine of a hundred arrays as some seven hundred
arguments of every call, which takes minutes to compile and is slow to run.  Here it is passed by
reference: its fields are unpacked once, into the stack frame of the call from Python, and methods
get the address.

Methods are compiled by lean/, the loops around them and what lean/ does not know by numba.  What
they use of numba's internals is listed in internals.py.

lean         a small compiler for methods, a tenth of numba's work
internals    what is used of numba and is not public
waiting      what is being compiled, for those who wait for it
code_folder  the folders of machine code: that of earlier runs, and that inside the package
instructions fetching memory before it is needed, log2 of whole numbers
mixing       pseudo-random numbers, the same in each run
lists        pools, queues, lists and hash tables of numbered entries, dense ids for sparse numbers
events       a heap by time, and scheduled events, each with the part that it concerns
jiffies      timers of a Linux kernel
limits       token buckets
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import pickle
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.extending import (
    NativeValue,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from hybridsim.jit import code_folder, lean, waiting
from hybridsim.jit.internals import (
    AbstractTemplate,
    AttributeTemplate,
    Flags,
    FunctionCache,
    IndexDataCacheFile,
    cgutils,
    compile_internal,
    cpu_target,
    impl_ret_borrowed,
    infer_getattr,
    rtsys,
    signature,
)
from hybridsim.jit.lean.kinds import Unsupported

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

compiled = not numba.config.DISABLE_JIT


class Method:
    """A method of a state machine: compiled for compiled code, plain for a call from Python."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method for a call from Python; on the class, this descriptor."""
        return self if instance is None else self.function.__get__(instance, owner)

    def __call__(self, *arguments: Any) -> Any:
        """Call a function that is not a method from Python."""
        return self.function(*arguments)


def method(function: F) -> F:
    """Make this method of a state machine, or this function, callable from compiled code.

    It must not allocate: all state exists before the loop starts.
    """
    return Method(function) if compiled else function  # type: ignore[return-value]


kernel = method  # the decorator's name for functions outside state machines


def loop(function: F) -> F:
    """Compile `function` and keep the machine code on disk until any source file changes.

    Numba invalidates a cached function when its own file changes, not when a method that it calls
    changes; so the folder is named after a digest of all source that machine code may depend on.
    """
    if not compiled:
        return function
    others = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(code_folder.cache_folder())
    try:
        compiled_loop = njit(_entry(function), cache=True, nogil=True, error_model="numpy")
    finally:
        numba.config.CACHE_DIR = others
    cache = compiled_loop._cache
    cache.__class__ = _QuickCache
    place = code_folder.shipped_folder() / function.__module__
    cache.shipped = IndexDataCacheFile(str(place), cache._impl.filename_base, code_folder.CPU)
    return compiled_loop


def _entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one as a method, so that numba has little to compile.

    It stands at the place of the other one: numba names the files of machine code after that.
    """
    names = ", ".join(inspect.signature(function).parameters)
    text = f"def {function.__name__}({names}):\n    return body({names})\n"
    namespace: dict[str, Any] = {"body": Method(function), "__name__": function.__module__}
    exec(compile(text, function.__code__.co_filename, "exec"), namespace)
    entry: Callable[..., Any] = namespace[function.__name__]
    functools.update_wrapper(entry, function)
    del entry.__wrapped__  # type: ignore[attr-defined]
    line = function.__code__.co_firstlineno
    entry.__code__ = entry.__code__.replace(co_firstlineno=line)
    return entry


DAMAGED = (OSError, EOFError, pickle.UnpicklingError, ValueError)  # errors from truncated files


class _QuickCache(FunctionCache):
    """Loads machine code without first loading numba's support for other types.

    That saves 0.4 s at each command's start.  A loop that is not in the cache is compiled, and the
    compiler loads what it needs.
    """

    shipped: IndexDataCacheFile  # machine code in the package itself

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the loop for a signature from the cache, or None."""
        rtsys.initialize(target_context)  # machine code needs it for reference counting
        try:
            found = self._load_overload(sig, target_context)
        except DAMAGED:
            with contextlib.suppress(OSError):
                self._cache_file.flush()  # delete an unreadable index, else it would stay forever
            found = None
        if found is None:
            found = self._load_shipped(sig, target_context)
        if found is None:
            waiting.begin(f"{self._py_func.__module__}.{self._py_func.__name__}")
        return found

    def _load_shipped(self, sig: Any, target_context: Any) -> Any:
        """Return the loop from the package's own machine code, or None."""
        with contextlib.suppress(*DAMAGED):
            data = self.shipped.load(self._shipped_key(sig))
            if data is not None and code_folder.suits_this_cpu():
                return self._impl.rebuild(target_context, data)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a loop, unless its library names modules that another process may not have.

        If the disk is full, nothing is saved; the loop itself stays usable.
        """
        waiting.end()
        if all(function.__module__.startswith("hybridsim.") for function, _ in _methods):
            with contextlib.suppress(*DAMAGED):
                super().save_overload(sig, data)
            if code_folder.is_being_made():
                Path(self.shipped._cache_path).mkdir(parents=True, exist_ok=True)
                self.shipped.save(self._shipped_key(sig), self._impl.reduce(data))

    def _shipped_key(self, sig: Any) -> Any:
        """Return the key of a loop that does not depend on the CPU of this machine."""
        code = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        return sig, code


_state_machines: set[type] = set()


def state_machine(cls: C) -> C:
    """Make compiled code take instances of this NamedTuple class by reference."""
    _state_machines.add(cls)

    @typeof_impl.register(cls)
    def _(value: Any, context: Any) -> StateMachineType:
        return StateMachineType(cls, tuple(_type_of_field(field, context) for field in value))

    return cls


def _type_of_field(field: Any, context: Any) -> Any:
    found = typeof_impl(field, context)
    return found.dtype if isinstance(found, types.IntEnumMember) else found  # to us an integer


def plain_tuple(cls: C) -> C:
    """Make loops take instances of this NamedTuple class as numba does: a tuple with names.

    Without it numba looks through all its types at the first call; that fails while another thread
    compiles, because numba registers more types meanwhile.
    """
    typeof_impl.register(cls)(typeof_impl.dispatch(tuple))
    return cls


@functools.cache
def fresh(compiled_loop: Any) -> Any:
    """Return the same loop, compiled for this process only: for classes from other packages."""
    return njit(nogil=True, error_model="numpy")(getattr(compiled_loop, "py_func", compiled_loop))


def is_ours(machine: Any) -> bool:
    """Return whether a state machine and all its parts are defined in this package."""
    parts = [part for part in machine if isinstance(part, tuple)]
    is_whole = type(machine) is tuple or type(machine).__module__.startswith("hybridsim.")
    return is_whole and all(map(is_ours, parts))


def fitting(compiled_loop: Any, machine: Any, interpreted: bool = False) -> Any:
    """Return the loop in the form that suits a state machine.

    Cached machine code if all its parts are in this package; else compiled for this process; plain
    Python if `interpreted`, or if a part is a plain Python object, as in a policy's first draft.
    """
    if interpreted or not is_compilable(machine):
        return getattr(compiled_loop, "py_func", compiled_loop)
    return compiled_loop if is_ours(machine) else fresh(compiled_loop)


def of_these_types(compiled_loop: Any, *arguments: Any) -> Any:
    """Return a loop for arguments of exactly the types of these: they are not looked at again.

    To find the type of a machine of a hundred arrays takes four times as long as to pass it on.
    """
    if not hasattr(compiled_loop, "typeof_pyval"):
        return compiled_loop
    return compiled_loop.compile(tuple(map(compiled_loop.typeof_pyval, arguments)))


def is_compilable(value: Any) -> bool:
    """Return whether compiled code can take a state machine and all its parts."""
    if isinstance(value, tuple):
        return all(map(is_compilable, value))
    return value is None or isinstance(value, (int, np.ndarray, np.generic))


def check_part(part: Any, role: str, methods: Iterable[str], from_python: Iterable[str]) -> None:
    """Raise TypeError if a part of a machine lacks a method, instead of numba's long error.

    The loop calls `methods`; `from_python` are called between two calls of the loop.
    """
    cls = type(part)
    for name in (*methods, *from_python):
        if not callable(getattr(cls, name, None)):
            raise TypeError(f"{cls.__name__} is not {role}: it lacks {name}()")
    if not compiled or not isinstance(part, tuple):
        return
    if cls not in _state_machines:
        raise TypeError(f"{cls.__name__} is a tuple that lacks the decorator @state_machine")
    for name in methods:
        if not isinstance(getattr(cls, name), Method):
            raise TypeError(f"{cls.__name__}.{name}() lacks the decorator @method")


class StateMachineType(types.Type):
    """Numba's type of a state machine: its class, and the types of its fields."""

    def __init__(self, cls: type, field_types: tuple[types.Type, ...]) -> None:
        self.instance_class = cls
        self.field_types = dict(zip(cls._fields, field_types))  # type: ignore[attr-defined]
        fields = ", ".join(f"{name}: {kind}" for name, kind in self.field_types.items())
        whole = f"{cls.__module__}.{cls.__qualname__}({fields})"
        # Machines nest: full names in the name of each method would cost seconds.
        digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
        super().__init__(f"{cls.__qualname__}.{digest}")

    @property
    def key(self) -> Any:
        """Identify the type: a class that is defined again is another class."""
        return self.instance_class, tuple(self.field_types.values())

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StateMachineType) and self.key == other.key)


@register_model(StateMachineType)
class _ByReference(models.OpaqueModel):
    """A state machine in compiled code is the address of its fields."""


def _frame(context: Any, machine: StateMachineType) -> ir.LiteralStructType:
    kinds = machine.field_types.values()
    return ir.LiteralStructType([context.get_value_type(kind) for kind in kinds])


@unbox(StateMachineType)
def _unpack(machine: StateMachineType, instance: Any, c: Any) -> NativeValue:
    """Put the fields of a Python instance into a frame that lives as long as the call."""
    frame = cgutils.alloca_once(c.builder, _frame(c.context, machine))
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    fields = []
    for position, kind in enumerate(machine.field_types.values()):
        item = c.pyapi.tuple_getitem(instance, position)
        place = cgutils.gep_inbounds(c.builder, frame, 0, position)
        if isinstance(kind, (types.Array, types.Number, types.Boolean)):
            place = c.builder.bitcast(place, cgutils.voidptr_t)
            is_error = c.builder.call(_unpacker(c, kind), [item, place])
            if isinstance(kind, types.Array):
                fields.append((kind, place, None))
        else:
            field = c.unbox(kind, item)
            c.builder.store(field.value, place)
            is_error = field.is_error
            fields.append((kind, place, field))
        c.builder.store(c.builder.or_(c.builder.load(failed), is_error), failed)

    def cleanup() -> None:
        """Release the references that unpacking took, as numba does for arguments."""
        for kind, place, field in reversed(fields):
            if field is None:
                c.builder.call(_releaser(c, kind), [place])
                continue
            if field.cleanup is not None:
                field.cleanup()
            if c.context.enable_nrt:
                c.context.nrt.decref(c.builder, kind, field.value)

    address = lean.unknown(c.builder, c.builder.bitcast(frame, cgutils.voidptr_t))
    return NativeValue(address, is_error=c.builder.load(failed), cleanup=cleanup)


# A machine has hundreds of fields of some ten types: what unpacks a field is a function for each
# type, which LLVM compiles once.


def _unpacker(c: Any, kind: types.Type) -> ir.Function:
    """Return a function that puts a Python object into a place, and returns whether it failed."""
    function, builder = _emitted(c, "unpack", kind, cgutils.bool_t, 2)
    if builder is not None:
        instance, place = function.args
        field = c.context.get_python_api(builder).to_native_value(kind, instance)
        builder.store(field.value, builder.bitcast(place, field.value.type.as_pointer()))
        builder.ret(field.is_error)
    return function


def _releaser(c: Any, kind: types.Type) -> ir.Function:
    """Return a function that releases the reference that an unpacked array took."""
    function, builder = _emitted(c, "release", kind, ir.VoidType(), 1)
    if builder is not None:
        whole = c.context.get_value_type(kind)
        place = builder.bitcast(function.args[0], whole.as_pointer())
        if c.context.enable_nrt:
            c.context.nrt.decref(builder, kind, builder.load(place))
        builder.ret_void()
    return function


def _emitted(
    c: Any, name: str, kind: types.Type, result: ir.Type, parameters: int
) -> tuple[ir.Function, ir.IRBuilder | None]:
    """Return a function of the module, and a builder for its instructions if it has none yet."""
    name = f"hybridsim.{name}.{kind}"
    if name in c.builder.module.globals:
        return c.builder.module.globals[name], None
    whole = ir.FunctionType(result, [cgutils.voidptr_t] * parameters)
    function = ir.Function(c.builder.module, whole, name)
    function.linkage = "private"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block())


@lower_getattr_generic(StateMachineType)
def _field(context: Any, builder: Any, machine: StateMachineType, address: Any, name: str) -> Any:
    """Load a field from the frame."""
    frame = builder.bitcast(address, _frame(context, machine).as_pointer())
    position = list(machine.field_types).index(name)
    value = builder.load(cgutils.gep_inbounds(builder, frame, 0, position))
    return impl_ret_borrowed(context, builder, machine.field_types[name], value)


@infer_getattr
class _FieldsAndMethods(AttributeTemplate):
    key = StateMachineType

    def generic_resolve(self, machine: StateMachineType, name: str) -> Any:
        if name in machine.field_types:
            return machine.field_types[name]
        method = getattr(machine.instance_class, name, None)
        if not isinstance(method, Method):
            return None
        function = method.function
        _lower_method(name)

        class Bound(AbstractTemplate):
            key = (StateMachineType, name)

            def generic(self, args: Any, kws: Any) -> Any:
                plain = tuple(map(_plain, args))
                callee = _compiled(self.context, function, (machine, *plain))
                return signature(_returned(callee), *plain, recvr=machine)

        return types.BoundFunction(Bound, machine)


@functools.cache
def _lower_method(name: str) -> None:
    """Register with numba, once for each name, how a method of that name is called."""

    @lower_builtin((StateMachineType, name), StateMachineType, types.VarArg(types.Any))
    def call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        method = getattr(sig.args[0].instance_class, name)
        return _call(context, builder, method.function, sig, args)


@typeof_impl.register(Method)
def _kernel_type(value: Method, context: Any) -> types.Type:
    """Make a function that is not a method callable from compiled code."""

    class Free(AbstractTemplate):
        key = value

        def generic(self, args: Any, kws: Any) -> Any:
            plain = tuple(map(_plain, args))
            return signature(_returned(_compiled(self.context, value.function, plain)), *plain)

    @lower_builtin(value, types.VarArg(types.Any))
    def call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _call(context, builder, value.function, sig, args)

    return types.Function(Free)


def _call(context: Any, builder: Any, function: Any, sig: Any, args: Any) -> Any:
    callee, library = _methods[function, sig.args], context.active_code_library
    roots = _roots(library)
    if isinstance(callee, lean.Compiled):
        roots.append(callee)
        return lean.call(context, builder, callee, sig, args)
    methods = _numbas_library()
    if library is not methods:  # a loop's, which has one call
        library.add_linking_library(_Linked(lambda: _unfinished(methods), methods._reload_init))
        library.add_linking_library(_Linked(lambda: lean.linked(_roots(methods))))
        for needed in methods._linking_libraries:
            library.add_linking_library(needed)
    return context.call_internal(builder, callee.fndesc, callee.signature, args)


def _returned(callee: Any) -> Any:
    return callee.returns if isinstance(callee, lean.Compiled) else callee.signature.return_type


def _roots(library: Any) -> list[lean.Compiled]:
    """Return the list of what a library calls of methods that numba did not compile."""
    if library not in _called:
        _called[library] = roots = list[lean.Compiled]()
        library._optimize_final_module = functools.partial(_optimize, library)
        if library is not _numbas_library():
            library.add_linking_library(_Linked(lambda: lean.linked(roots)))
    return _called[library]


class _Linked:
    """What a loop's library links when it is finished: a module that is made then."""

    def __init__(self, module: Callable[[], Any], reload_init: Iterable[Any] = ()) -> None:
        self._get_module_for_linking = module
        self._reload_init = set(reload_init)

    def _ensure_finalized(self) -> None:
        """Do nothing, so that more functions can be added."""


MANY = 100  # functions: a machine's loop, not a small one


def _optimize(library: Any) -> None:
    """Optimize a loop's library; that of a machine with passes that suit it.

    A machine is branches over single numbers: nothing to vectorize or to unroll, and most of it
    seldom runs, so less of it is inlined, and no redundant loads are sought across blocks.  That
    saves half of LLVM's time; the loop runs as fast.
    """
    module = library._final_module
    lean.keep_private(module)
    if sum(not each.is_declaration for each in module.functions) < MANY:
        type(library)._optimize_final_module(library)
        return
    options = llvm.PipelineTuningOptions(speed_level=1)
    options.loop_vectorization = options.loop_unrolling = False
    options.inlining_threshold = 75
    builder = llvm.create_pass_builder(library._codegen._tm, options)
    builder.getModulePassManager().run(module, builder)


def _plain(argument: types.Type) -> types.Type:
    """Return the argument type that a method is compiled for: every integer becomes int64."""
    is_whole = isinstance(argument, (types.Integer, types.IntEnumMember))
    return types.int64 if is_whole else types.unliteral(argument)


# Numba would create a library for each method, and optimise and link its callees again with every
# caller.  All methods share one library instead; it is optimised only as part of a loop's library.
_methods: dict[tuple[Any, ...], Any] = {}
_called: weakref.WeakKeyDictionary[Any, list[lean.Compiled]] = weakref.WeakKeyDictionary()


@functools.cache
def _numbas_library() -> Any:
    return cpu_target.target_context.codegen().create_library("hybridsim.methods")


def _compiled(context: Any, function: Any, arguments: tuple[types.Type, ...]) -> Any:
    """Compile a method for argument types into the shared library, or return it from there."""
    key = (function, arguments)
    if key not in _methods and not numba.config.BOUNDSCHECK:
        with contextlib.suppress(Unsupported), waiting.translating(lean.count):
            _methods[key] = lean.for_numba(function, arguments)
    if key not in _methods:
        target, library = cpu_target.target_context, _numbas_library()
        flags = Flags()
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.error_model = "numpy"
        flags.boundscheck = bool(numba.config.BOUNDSCHECK)
        _methods[key] = compile_internal(
            context, target, library, function, arguments, None, flags, {}
        )
    return _methods[key]


def _unfinished(library: Any) -> Any:
    """Return a copy of a library's module before it is optimised."""
    module = library._final_module.clone()
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "linkonce_odr"  # dropped if the loop does not use it
    return module
