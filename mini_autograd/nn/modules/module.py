"""`Module`: a function with parameters, made of other modules.

The one idea to know: assigning an attribute is registering it. Parameters, buffers (tensors that belong to the module's
state but are not trained) and modules go into three dicts, and everything else (`parameters()`, `state_dict()`, `to()`)
is a walk through these.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from mini_autograd.graph.removable_handle import RemovableHandle
from mini_autograd.nn.modules.backward_hooks import ModuleCall
from mini_autograd.nn.modules.hooks import run_hooks, run_pre_hooks, run_remaining_hooks
from mini_autograd.nn.modules.loading import IncompatibleKeys, load
from mini_autograd.nn.parameter import Parameter
from mini_autograd.numerics import dtypes
from mini_autograd.numerics.arrays import dtype_name, is_floating
from mini_autograd.tensors.tensor import Tensor

M = TypeVar("M", bound="Module")


class Module:
    """The base of all models and their parts. A subclass calls `super().__init__()` first and defines `forward`."""

    training: bool

    def __init__(self) -> None:
        own: dict[str, Any] = {"training": True, "_parameters": {}, "_buffers": {}, "_modules": {}}
        own |= {"_forward_hooks": {}, "_forward_pre_hooks": {}, "_non_persistent": set()}
        own |= {"_backward_hooks": {}, "_backward_pre_hooks": {}, "_takes_kwargs": set(), "_always_called": set()}
        self.__dict__.update(own)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` between the hooks. A hook that returns something replaces the arguments or the result."""
        if not (self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks):
            return self.forward(*args, **kwargs)  # the usual case, quickly
        args, kwargs = run_pre_hooks(self, args, kwargs)
        watch = None
        if self._backward_hooks or self._backward_pre_hooks:
            watch = ModuleCall(self, self._backward_pre_hooks, self._backward_hooks)
            args = watch.inputs(args)
        called: set[int] = set()
        try:
            result = run_hooks(self, args, kwargs, self.forward(*args, **kwargs), called)
        except Exception:
            run_remaining_hooks(self, args, kwargs, called)
            raise
        return result if watch is None else watch.outputs(result)

    # attributes

    def __setattr__(self, name: str, value: Any) -> None:
        families = self.__dict__.get("_parameters"), self.__dict__.get("_buffers"), self.__dict__.get("_modules")
        for family, kind, what in zip(families, KINDS, WHAT, strict=True):
            if isinstance(value, kind) and (what != "buffer" or (family is not None and name in family)):
                if family is None:
                    plural = "s" if what == "parameter" else ""
                    raise AttributeError(f"cannot assign {what}{plural} before Module.__init__() call")
                if name not in family:
                    self._forget(name)
                family[name] = value
                return
            if family is not None and name in family:
                if value is not None:
                    role = "child module" if what == "module" else what
                    raise TypeError(
                        f"cannot assign '{type_name(value)}' as {role} '{name}' ({EXPECTED[what]} or None expected)"
                    )
                family[name] = None
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for family in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(family, ()):
                return self.__dict__[family][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def _forget(self, name: str) -> bool:
        """Remove an attribute from wherever it is registered; return whether it was registered."""
        homes = [home for home in (self._parameters, self._buffers, self._modules) if name in home]
        for home in homes:
            del home[name]
        self.__dict__.pop(name, None)
        self._non_persistent.discard(name)
        return bool(homes)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name."""
        self._check_name(name, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not trained. If not `persistent`, it is left out of `state_dict`."""
        self._check_name(name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        if not persistent:
            self._non_persistent.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        self._check_name(name, "module")
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name: str, what: str) -> None:
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__["_" + what + "s"]:
            raise KeyError(f"attribute '{name}' already exists")

    # traversal

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all modules in it, with their paths; a shared one appears once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, join(prefix, name), remove_duplicate)

    def _members(self, family: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in getattr(module, family).items():
                if member is not None and id(member) not in seen:
                    if once:
                        seen.add(id(member))
                    yield join(path, name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their paths; a shared one appears once."""
        return self._members("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their paths; a shared one appears once."""
        return self._members("_buffers", prefix, recurse, remove_duplicate)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly in this one."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters: what an optimizer gets."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def modules(self) -> Iterator[Module]:
        """This module and all modules in it."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The modules directly in this one."""
        return (module for _, module in self.named_children())

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "encoder.0"."""
        module = self
        for name in target.split(".") if target else []:
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "encoder.0.weight"."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if not isinstance(found := getattr(module, name), Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "encoder.norm.running_mean"."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    # changing all parts

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call `fn` with every module in this one, and with this one last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set `training`, which dropout and batch norm look at, in this module and all modules in it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """`train(False)`."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set `requires_grad` for all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to zero."""
        for parameter in self.parameters():
            grad: Any = parameter.grad
            if set_to_none:
                parameter.grad = None
            elif grad is not None:
                grad.detach().zero_()

    def _apply(self: M, change: Callable[[Tensor], Tensor]) -> M:
        for module in self.modules():
            for parameter in module._parameters.values():
                if parameter is not None:
                    grad, parameter.grad = parameter.grad, None
                    parameter.data = change(parameter.detach())
                    parameter.grad = None if grad is None else change(grad)
            for name, buffer in module._buffers.items():
                module._buffers[name] = None if buffer is None else change(buffer)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Convert floating parameters and buffers to a dtype, and move all of them to a device."""
        targets = [*args, *kwargs.values()]
        kinds = [target for target in targets if isinstance(target, (np.dtype, dtypes.dtype))]
        devices = [target for target in targets if target is not None and not any(target is kind for kind in kinds)]
        for dtype in kinds:
            if not is_floating(dtype):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                    f"dtype={dtypes.of(dtype)}"
                )
            self._apply(lambda tensor, dtype=dtype: tensor.to(dtype) if is_floating(tensor.dtype) else tensor)  # type: ignore[misc]
        for device in devices:
            self._apply(lambda tensor, device=device: tensor.to(device))  # type: ignore[misc]
        return self

    def half(self: M) -> M:
        return self._apply(lambda tensor: tensor.half() if is_floating(tensor.dtype) else tensor)

    def float(self: M) -> M:
        return self._apply(lambda tensor: tensor.float() if is_floating(tensor.dtype) else tensor)

    def double(self: M) -> M:
        return self._apply(lambda tensor: tensor.double() if is_floating(tensor.dtype) else tensor)

    def type(self: M, dst_type: Any) -> M:
        """Convert all parameters and buffers to a dtype, including integer ones."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def cpu(self: M) -> M:
        return self._apply(lambda tensor: tensor.cpu())  # type: ignore[attr-defined]

    def cuda(self: M) -> M:
        return self._apply(lambda tensor: tensor.cuda())  # type: ignore[attr-defined]

    # state

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """All parameters and persistent buffers by path, sharing memory with the module."""
        state: dict[str, Tensor] = OrderedDict()
        for name, member in [*self._parameters.items(), *self._buffers.items()]:
            if member is not None and name not in self._non_persistent:
                state[prefix + name] = member if keep_vars else member.detach()
        for name, module in self._modules.items():
            if module is not None:
                state |= module.state_dict(prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return state

    def load_state_dict(
        self, state_dict: dict[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy a state into the module's tensors, or with `assign`, replace them with the state's tensors.

        Unless `strict`, missing and unexpected keys are only reported.
        """
        return load(self, state_dict, strict, assign)

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)`, or `hook(module, args, kwargs)` if `with_kwargs`, before every forward pass."""
        handle = RemovableHandle(self._forward_pre_hooks, hook, prepend=prepend)
        self._takes_kwargs |= {handle.id} if with_kwargs else set()
        return handle

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, result)` after every forward pass, or `hook(module, args, kwargs, result)`.

        With `always_call`, also call it after a forward pass that raised, if it had not been called yet.
        """
        handle = RemovableHandle(self._forward_hooks, hook, prepend=prepend)
        self._takes_kwargs |= {handle.id} if with_kwargs else set()
        self._always_called |= {handle.id} if always_call else set()
        return handle

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` in backward passes; what it returns replaces `grad_input`."""
        return RemovableHandle(self._backward_hooks, hook, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward pass; its result replaces `grad_output`."""
        return RemovableHandle(self._backward_pre_hooks, hook, prepend=prepend)

    # printing

    def extra_repr(self) -> str:
        """The text between the parentheses when the module is printed."""
        return ""

    def _inner_lines(self) -> list[str]:
        """The modules in this one, printed."""
        return [f"({name}): " + indented(repr(module)) for name, module in self._modules.items()]

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        own = self.extra_repr().split("\n") if self.extra_repr() else []
        inner = self._inner_lines()
        if not inner and len(own) < 2:
            return f"{self._get_name()}({''.join(own)})"
        return f"{self._get_name()}(\n  " + "\n  ".join([*own, *inner]) + "\n)"


KINDS = (Parameter, Tensor, Module)
WHAT = ("parameter", "buffer", "module")
EXPECTED = {"parameter": "torch.nn.Parameter", "buffer": "torch.nn.Buffer, torch.Tensor", "module": "torch.nn.Module"}


def indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def type_name(value: Any) -> str:
    """The name of a value's type in PyTorch's errors."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return f"torch.{dtype_name(value.dtype)}Tensor"
    module = type(value).__module__
    return type(value).__name__ if module == "builtins" else f"{module}.{type(value).__name__}"
