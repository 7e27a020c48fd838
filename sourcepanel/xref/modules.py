"""Which file an import names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from sourcepanel.xref.scopes import FileScopes, Scope


@dataclass(eq=False, slots=True)
class Module:
    """A file, or a folder that can be imported without one."""

    name: str
    """Dotted, from the root of the repository."""
    path: str = ""
    """Empty for a folder without `__init__.py`, and for a file that is not in the snapshot."""
    scopes: FileScopes | None = None
    """None where there is no file, and where Python cannot parse it."""

    @property
    def scope(self) -> Scope | None:
        """The scope of its top level."""
        return self.scopes.module if self.scopes else None


class Modules:
    """All files of a snapshot as modules.

    A file is known by its path from the root (`megatron.core.utils`; folders need no `__init__.py`, as Python has
    it), and where that lies in a package below another folder (`src/pkg/…`), by the package's own name, too,
    unless two packages have that. A script also finds the files beside it; the same name at the root goes first.
    """

    def __init__(self, files: Mapping[str, FileScopes | None]) -> None:
        self._modules: dict[str, Module] = {}
        self.by_path: dict[str, Module] = {}
        for path, scopes in sorted(files.items()):
            pure = PurePosixPath(path)
            parts = pure.parent.parts if pure.name == "__init__.py" else (*pure.parent.parts, pure.stem)
            made = Module(".".join(parts), path, scopes)
            self.by_path[path] = made
            # Of `x.py` and `x/__init__.py` Python takes the package, which sorts before.
            if all(part.isidentifier() for part in parts):
                self._modules.setdefault(made.name, made)
        for name in list(self._modules):
            while name := name.rpartition(".")[0]:
                self._modules.setdefault(name, Module(name))
        self._packages = self._by_package(files)

    def _by_package(self, files: Iterable[str]) -> dict[str, Module | None]:
        """Name within the topmost package → module, None where two claim it; only packages below the root."""
        found: dict[str, Module | None] = {}
        folders = {str(PurePosixPath(path).parent) for path in files if path.endswith("__init__.py")}
        for path, module in self.by_path.items():
            top = PurePosixPath(path).parent
            while str(top.parent) in folders:
                top = top.parent
            above = str(top.parent).replace("/", ".") + "."
            if str(top) in folders and above != ".." and module.name.startswith(above):
                name = module.name.removeprefix(above)
                found[name] = module if name not in found else None
        return {name: module for name, module in found.items() if name not in self._modules}

    def get(self, name: str) -> Module | None:
        """The module of this full name."""
        return self._modules.get(name)

    def resolve(self, level: int, name: str, *, importer: str) -> Module | None:
        """What `import name`, or `from <level dots>name`, in this file means; None for what lies outside."""
        # `from .__init__ import x` is another spelling of the package.
        name = name.removesuffix("__init__").removesuffix(".")
        if level:
            folder = PurePosixPath(importer).parent
            parts = folder.parts[: len(folder.parts) - level + 1]
            if len(folder.parts) < level - 1:
                return None
            return self._modules.get(".".join(filter(None, [*parts, name])))
        top = name.partition(".")[0]
        standard = top in sys.stdlib_module_names
        found = self._modules.get(name) or self._packages.get(name)
        # A folder without `__init__.py` never hides a module of the standard library; a file does.
        if found and (not standard or self._modules[top].path):
            return found
        if standard:
            return None
        return self._beside(name, importer=importer)

    def _beside(self, name: str, *, importer: str) -> Module | None:
        """A file in the importing script's own folder, which is no package."""
        folder = PurePosixPath(importer).parent
        if folder == PurePosixPath() or (folder / "__init__.py").as_posix() in self.by_path:
            return None
        found = self._modules.get(".".join([*folder.parts, name]))
        return found if found and found.path else None

    def below(self, module: Module, name: str) -> Module | None:
        """The submodule of this name."""
        return self._modules.get(f"{module.name}.{name}" if module.name else name)
