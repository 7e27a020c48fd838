"""The definitions of one C, C++ or CUDA file, from tree-sitter's grammar of CUDA, which holds the other two.

Names are qualified as in Python, dots only: `namespace.Class.method`. What the preprocessor would make of the text is
not known: both arms of an `#if` are read, and a macro that writes a definition defines nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from sourcepanel.symbols import Kind, Symbol, SymbolTable

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hh", ".hpp")
_TYPES = frozenset({"class_specifier", "struct_specifier", "union_specifier", "enum_specifier"})


def parse_cpp(text: str) -> SymbolTable:
    """Parse the text; what the grammar does not understand is passed over, never an exception."""
    root = _parser().parse(text.encode("utf-8", "replace")).root_node
    found = sorted(_walk(root, "", in_class=False), key=lambda s: (s.start, -s.end))
    return SymbolTable(tuple(found))


@cache
def _parser() -> Parser:
    # Not at the top: most sites hold no such file, and loading a grammar takes time.
    import tree_sitter_cuda
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_cuda.language()))


def _walk(node: Node, prefix: str, *, in_class: bool) -> Iterator[Symbol]:
    for child in node.named_children:
        if child.type == "function_definition":
            yield from _function(child, prefix, in_class=in_class)
        elif child.type in _TYPES and (body := child.child_by_field_name("body")):
            name = _text(child.child_by_field_name("name"))
            if name:
                bases = next((c for c in child.named_children if c.type == "base_class_clause"), None)
                signature = f"({_text(bases).lstrip(': ')})" if bases else ""
                yield _symbol(child, prefix + _dotted(name), "class", signature)
                yield from _walk(body, f"{prefix}{_dotted(name)}.", in_class=True)
        elif child.type == "namespace_definition":
            name = _text(child.child_by_field_name("name"))
            yield from _walk(child, f"{prefix}{_dotted(name)}." if name else prefix, in_class=False)
        elif child.type not in ("compound_statement", "parameter_list"):
            yield from _walk(child, prefix, in_class=in_class)


def _function(node: Node, prefix: str, *, in_class: bool) -> Iterator[Symbol]:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        # A pointer or a reference that is returned stands around it.
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next((c for c in declarator.named_children if c.type.endswith("declarator")), None)
    name = _text(declarator.child_by_field_name("declarator")) if declarator else ""
    if declarator is None or not name:
        return
    kind: Kind = "method" if in_class or "::" in name else "function"
    returns = _text(node.child_by_field_name("type"))
    signature = _text(declarator.child_by_field_name("parameters")) + (f" -> {returns}" if returns else "")
    yield _symbol(node, prefix + _dotted(name), kind, signature)


def _symbol(node: Node, name: str, kind: Kind, signature: str) -> Symbol:
    parent = node.parent
    around = parent if parent is not None and parent.type == "template_declaration" else node
    line, end = node.start_point[0] + 1, node.end_point[0] + 1
    return Symbol(name, kind, around.start_point[0] + 1, line, end, " ".join(signature.split()))


def _dotted(name: str) -> str:
    return "".join(name.split()).replace("::", ".")


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text else ""
