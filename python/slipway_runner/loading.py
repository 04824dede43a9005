"""Users' objects by reference: `module:Name` on Python's path, or a file and a name in it."""

import importlib
import importlib.util
import os
import sys


def load_object(reference):
    """`reference`: {"file": absolute path or None, "module": dotted name or None, "name": attribute}."""
    if reference["file"] is not None:
        module = module_of_file(reference["file"])
        where = reference["file"]
    else:
        module = own_module(reference["module"])
        where = f"module {reference['module']}"
    try:
        return getattr(module, reference["name"])
    except AttributeError:
        raise ImportError(f"{where} has no {reference['name']}") from None


def own_module(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        error.is_own = (error.name or "").split(".")[0] == name.split(".")[0]
        raise


def missing_package(error):
    """Name of a package that is not installed; None = the code itself is not there, or wrong. Of a package that is there and lacks a part nobody can say
    that it is missing."""
    if not isinstance(error, ModuleNotFoundError) or not error.name or getattr(error, "is_own", False):
        return None
    package = error.name.split(".")[0]
    try:
        return None if importlib.util.find_spec(package) is not None else package
    except (ImportError, ValueError):
        return None


def load_class(reference, method):
    found = load_object(reference)
    if not isinstance(found, type):
        raise ImportError(f"{reference['name']} is no class")
    if not callable(getattr(found, method, None)):
        raise ImportError(f"class {reference['name']} has no method {method}")
    abstract = getattr(found, "__abstractmethods__", frozenset())
    if abstract:
        raise ImportError(f"class {reference['name']} is abstract: {', '.join(sorted(abstract))}")
    return found


def module_of_file(file):
    """Once per file. Modules beside it are found, as when it is run by itself."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            return module
    folder = os.path.dirname(file)
    if folder not in sys.path:
        sys.path.append(folder)
    stem = os.path.splitext(os.path.basename(file))[0]
    name = f"slipway_user_{stem}" if is_taken(stem) else stem
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def is_taken(name):
    return name in sys.modules or name in getattr(sys, "stdlib_module_names", ())
