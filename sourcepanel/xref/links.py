"""From identifiers to definitions, each with how certain it is."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sourcepanel.source import SourceFile
from sourcepanel.xref.definitions import Definitions, defines, scopes
from sourcepanel.xref.infer import Inference, is_property
from sourcepanel.xref.model import MAX_TARGETS, Definition, Id, Occurrence, Status, UseKind
from sourcepanel.xref.modules import Module, Modules
from sourcepanel.xref.scopes import Binding, ImportPart, Reference, Scope, decorators, last_name, parameters
from sourcepanel.xref.values import NO_SITES, OUTSIDE_SITES, UNKNOWN_SITES, Sites, Values

_COMMON = frozenset(
    name for kind in (str, bytes, list, dict, set, tuple, int, float, type, property) for name in dir(kind)
) | set(dir(builtins))
"""Names that objects of the standard library have: alone they point at nothing."""

_NAMESPACES = frozenset({"args", "get_args"})
"""Names under which programs hold what their command line says."""

Verdict = tuple[Status, tuple[Definition, ...]]


@dataclass(frozen=True, slots=True)
class Linked:
    """One identifier and what became of it."""

    line: int
    start: int
    end: int
    status: Status
    kind: UseKind
    targets: tuple[Definition, ...] = ()

    @property
    def occurrence(self) -> Occurrence | None:
        """The link, if it is one."""
        if self.status not in ("certain", "likely"):
            return None
        return Occurrence(self.line, self.start, self.end, self.targets, self.status, self.kind)


class Linker:
    """Links all identifiers of a snapshot."""

    def __init__(self, modules: Modules, files: Mapping[str, SourceFile]) -> None:
        self._modules = modules
        self._inference = Inference(modules)
        self._definitions = Definitions(files)
        self._classes: list[Scope] = []
        self._direct: dict[str, frozenset[str]] = {}
        self._reach: dict[str, frozenset[str]] = {}
        self._methods: dict[str, list[Binding]] = defaultdict(list)
        self._options: dict[str, list[Binding]] = defaultdict(list)
        self._fields: dict[str, list[Binding]] = defaultdict(list)
        for module in modules.by_path.values():
            for scope in scopes(module.scope) if module.scope else ():
                self._learn(scope)
        self._inference.classes.learn(self._classes)

    def _learn(self, scope: Scope) -> None:
        for name, options in scope.options.items():
            self._options[name] += options
        if scope.kind != "class":
            return
        self._classes.append(scope)
        # A private class is no set of options.
        data = "dataclass" in decorators(scope.node) and not scope.name.rpartition(".")[2].startswith("_")
        for name, bound in scope.bindings.items():
            if bound[0].kind == "def" and not is_property(bound[0]):
                self._methods[name].append(bound[0])
            elif bound[0].annotation is not None and data:
                self._fields[name].append(bound[0])

    def parsed(self, path: str) -> bool:
        """Whether Python can parse the file."""
        return self._modules.by_path[path].scopes is not None

    def link(self, path: str) -> Iterator[Linked]:
        """Every identifier of a file, in order of the text; not those that are definitions themselves."""
        scopes = self._modules.by_path[path].scopes
        places: dict[tuple[int, int], Linked] = {}
        for reference in scopes.references if scopes else ():
            start = self._definitions.column(path, reference.line, reference.offset)
            end = start + len(reference.name)
            # A string that is an annotation may have no place; a name that Python normalises has another spelling.
            if not reference.line or self._definitions.line(path, reference.line)[start:end] != reference.name:
                continue
            status, targets = self._meaning(reference)
            if reference.kind == "set" and any(d.kind in ("class", "function", "method") for d in targets):
                # `name = None` beside a `def name`: a second definition, not a way to the first.
                status, targets = "unknown", ()
            place = reference.line, start
            if place not in places and not any(d.path == path and (d.line, d.column) == place for d in targets):
                places[place] = Linked(*place, end, status, reference.kind, targets)
        yield from (places[place] for place in sorted(places))

    def definitions(self, path: str) -> list[Definition]:
        """All definitions of a file, in order."""
        module = self._modules.by_path[path]
        found: dict[Id, Definition] = {}
        for scope in scopes(module.scope) if module.scope else ():
            for bound in [*scope.bindings.values(), *scope.attributes.values(), *scope.options.values()]:
                for binding in bound:
                    if defines(binding):
                        made = self._definitions.of(binding)
                        found.setdefault(made.id, made)
        return sorted(found.values(), key=lambda d: (d.line, d.column))

    def overrides(self, path: str) -> dict[Id, tuple[Definition, ...]]:
        """For each method of a file those of subclasses that take its place."""
        found = {}
        for cls in self._classes:
            for name, bound in cls.bindings.items() if cls.path == path else ():
                if bound[0].kind == "def" and name != "__init__":
                    below = [
                        child.bindings[name][0]
                        for child in self._inference.classes.below(cls)
                        if name in child.bindings
                    ]
                    replaced = tuple(self._definitions.of(b) for b in below if b.kind == "def")
                    if replaced:
                        found[self._definitions.of(bound[0]).id] = replaced
        return found

    # What an identifier means

    def _meaning(self, reference: Reference) -> Verdict:
        node, scope = reference.node, reference.scope
        if isinstance(node, ast.Name):
            return self._verdict(self._of_name(reference))
        if isinstance(node, ImportPart):
            return self._verdict(self._imported(node, importer=scope.path))
        if isinstance(node, ast.keyword):
            return self._verdict(self._field(reference))
        sites, values = self._inference.sites(node, scope)
        status, targets = self._verdict(sites)
        return self._guess(reference, node, values) if status == "unknown" else (status, targets)

    def _of_name(self, reference: Reference) -> Sites:
        names, name = self._inference.names, reference.name
        if reference.kind == "set":
            return names.follow(reference.scope.owner(name).bindings.get(name, ()), name=name)
        return names.find(name, reference.scope, line=reference.line)

    def _imported(self, part: ImportPart, *, importer: str) -> Sites:
        module = self._modules.resolve(part.level, part.module, importer=importer)
        if module is None:
            return OUTSIDE_SITES if not part.level else UNKNOWN_SITES
        return self._inference.names.member(module, part.member) if part.member else Sites((module,))

    def _field(self, reference: Reference) -> Sites:
        """The keyword of a call sets a field where the call makes an object of a data class."""
        assert reference.call is not None
        called = self._inference.values(reference.call.func, reference.scope)
        result = NO_SITES if called.complete and called.items else UNKNOWN_SITES
        for value in called.items:
            fields = UNKNOWN_SITES
            if value.kind == "class" and isinstance(value.of, Scope):
                fields = self._field_of(value.of, reference.name)
            result |= fields
        # A keyword of a function is its parameter, and that is no link.
        return result if any(isinstance(i, Binding) and i.annotation for i in result.items) else OUTSIDE_SITES

    def _field_of(self, cls: Scope, name: str) -> Sites:
        order = [entry for entry in self._inference.classes.order(cls) if isinstance(entry, Scope)]
        if not any("dataclass" in decorators(entry.node) for entry in order):
            return UNKNOWN_SITES
        found = self._inference.classes.member(cls, name, kind="class")
        made = next((entry.bindings["__init__"][0].node for entry in order if "__init__" in entry.bindings), None)
        if made is None:
            return found
        # A constructor of its own may hand on what it does not name.
        taken = dict((p.arg, stars) for p, stars in parameters(made.args)) if isinstance(made, ast.FunctionDef) else {}
        return found | UNKNOWN_SITES if name not in taken and "**" in taken.values() else UNKNOWN_SITES

    def _verdict(self, sites: Sites) -> Verdict:
        inside = [site for site in sites.items if isinstance(site, Module) or defines(site)]
        targets = tuple(
            dict.fromkeys(self._definitions.of(site) for site in inside if not isinstance(site, Module) or site.path)
        )
        if not targets:
            local = any(isinstance(site, Binding) for site in sites.items)
            outside = sites.complete and (sites.outside or bool(sites.items))
            return ("local" if local else "outside" if outside else "unknown"), ()
        if len(targets) > MAX_TARGETS:
            return "unknown", ()
        alone = len(targets) == 1 and len(inside) == len(sites.items)
        return ("certain" if alone and sites.complete and not sites.outside else "likely"), targets

    def _guess(self, reference: Reference, node: ast.Attribute, values: Values) -> Verdict:
        """An attribute that the classes do not tell: from its name and what is near. Never certain."""
        name = node.attr
        known = [v.of for v in values.items if v.kind in ("instance", "class") and isinstance(v.of, Scope)]
        if name.startswith("__") or (not known and any(v.kind == "outside" for v in values.items)):
            return "unknown", ()
        if known:
            # Abstract classes and mixins use what only their subclasses have.
            below = dict.fromkeys(child for cls in known for child in self._inference.classes.below(cls))
            sites = Sites()
            for child in below:
                sites |= self._inference.classes.own(child, name, instance=True)
        elif last_name(node.value.func if isinstance(node.value, ast.Call) else node.value) in _NAMESPACES:
            # One option of the command line, else one field of the data classes that programs make options of.
            near = self._reached(reference.scope.path)
            options, fields = self._options.get(name, []), self._fields.get(name, [])
            close = [[b for b in found if b.owner.path in near] for found in (options, fields)]
            sites = Sites(tuple(close[0] or close[1] or options or fields))
        elif reference.kind == "call" and "_" in name.strip("_") and name not in _COMMON:
            sites = Sites(tuple(self._methods.get(name, ())))
        else:
            return "unknown", ()
        found = [site for site in sites.items if isinstance(site, Binding) and defines(site)]
        near = self._reached(reference.scope.path)
        found = [b for b in found if b.owner.path in near] or found
        targets = tuple(dict.fromkeys(self._definitions.of(b) for b in found if not self._replaces(b, found)))
        few = len(targets) <= MAX_TARGETS if known else len(targets) == 1
        return ("likely", targets) if targets and few else ("unknown", ())

    def _reached(self, path: str) -> frozenset[str]:
        """The files that this one imports, and those that these import, and so on; itself, too."""
        if path not in self._reach:
            found, queue = {path}, [path]
            while queue:
                new = self._imports(queue.pop()) - found
                found |= new
                queue += new
            self._reach[path] = frozenset(found)
        return self._reach[path]

    def _imports(self, path: str) -> frozenset[str]:
        if path not in self._direct:
            scopes = self._modules.by_path[path].scopes
            parts = {r.node for r in scopes.references if isinstance(r.node, ImportPart)} if scopes else ()
            sites = [site for part in parts for site in self._imported(part, importer=path).items]
            self._direct[path] = frozenset(site.path for site in sites if isinstance(site, Module) and site.path)
        return self._direct[path]

    def _replaces(self, binding: Binding, others: Sequence[Binding]) -> bool:
        """Whether it takes the place of another of these in a subclass."""
        order = self._inference.classes.order(binding.owner)[1:]
        return any(other.owner in order for other in others)
