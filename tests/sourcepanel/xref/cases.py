"""One small package a construct; each line says what its identifiers mean (see `says.py`)."""

from __future__ import annotations

NAMES: dict[str, dict[str, str]] = {
    "import of a name": {
        "b.py": "def f(): ...\nX = 1\n",
        "a.py": """
            from b import f, X as Y  #> b=b.py f=b.py:f X=b.py:X
            f()  #> f=b.py:f
            print(Y)  #> Y=b.py:X print=outside
        """,
    },
    "import of a module": {
        "pkg/__init__.py": "",
        "pkg/m.py": "def f(): ...\nclass A: ...\n",
        "a.py": """
            import pkg.m  #> pkg=pkg/__init__.py m=pkg/m.py
            import pkg.m as n
            from pkg import m as o  #> m=pkg/m.py
            pkg.m.f()  #> pkg=pkg/__init__.py m=pkg/m.py f=pkg/m.py:f
            n.A()  #> n=pkg/m.py A=pkg/m.py:A
            o.missing()  #> o=pkg/m.py missing=unknown
        """,
    },
    "relative imports": {
        "p/__init__.py": "from .a import f  #> f=p/a.py:f a=p/a.py\n",
        "p/a.py": "def f(): ...\n",
        "p/q/__init__.py": "",
        "p/q/b.py": """
            from ..a import f  #> a=p/a.py f=p/a.py:f
            from .. import a  #> a=p/a.py
            from . import c  #> c=p/q/c.py
            from .c import g  #> g=p/q/c.py:g
            from ...beyond import x  #> x=unknown
            from ..__init__ import f as h  #> f=p/a.py:f
            h()  #> h=p/a.py:f
        """,
        "p/q/c.py": "def g(): ...\n",
    },
    "re-export through a package": {
        "p/__init__.py": "from .deep import *\nfrom .deep.x import f as renamed\n",
        "p/deep/__init__.py": "from .x import f, _hidden\n",
        "p/deep/x.py": "def f(): ...\ndef _hidden(): ...\n",
        "a.py": """
            import p
            from p import f, renamed  #> f=p/deep/x.py:f renamed=p/deep/x.py:f
            p.renamed()  #> renamed=p/deep/x.py:f
            p._hidden()  #> _hidden=unknown
        """,
    },
    "star import": {
        "m.py": "from k import inner\ndef f(): ...\ndef _g(): ...\nclass A: ...\n",
        "k.py": "def inner(): ...\n",
        "a.py": """
            from m import *  #> m=m.py
            f()  #> f=m.py:f
            inner()  #> inner=k.py:inner
            _g()  #> _g=unknown
            class A: ...
            A()  #> A=a.py:A
        """,
    },
    "star import with __all__": {
        "m.py": "__all__ = ['_g']\n__all__ += ['h']\ndef f(): ...\ndef _g(): ...\ndef h(): ...\n",
        "a.py": """
            from m import *
            f()  #> f=unknown
            _g()  #> _g=m.py:_g
            h()  #> h=m.py:h
        """,
    },
    "star import with a computed __all__": {
        "m.py": "__all__ = [n for n in dir()]\ndef f(): ...\n",
        "a.py": """
            from m import *
            f()  #> f=~m.py:f
        """,
    },
    "star import from another package": {
        "a.py": """
            from elsewhere import *
            f()  #> f=outside
        """,
    },
    "a later definition hides an imported one": {
        "m.py": "def f(): ...\n",
        "a.py": """
            from m import f  #> f=m.py:f
            f()  #> f=m.py:f
            def f(): ...
            f()  #> f=a.py:f
            def g():
                f()  #> f=a.py:f
        """,
    },
    "conditional import with a stand-in": {
        "m.py": "class A: ...\nclass B: ...\n",
        "a.py": """
            try:
                from m import A  #> A=m.py:A
                HAVE = True
            except ImportError:
                A = None
                HAVE = False  #> HAVE=a.py:HAVE@3
            try:
                from m import B
            except ImportError:
                class B: ...
            try:
                import numpy as np
            except ImportError:
                np = object()
            A()  #> A=m.py:A
            B()  #> B=~m.py:B|a.py:B
            np.zeros(1)  #> np=outside zeros=outside
            print(HAVE)  #> HAVE=a.py:HAVE@3
        """,
    },
    "both arms of an if": {
        "m.py": "def f(): ...\n",
        "a.py": """
            if FLAG:  #> FLAG=unknown
                from m import f
            else:
                def f(): ...
            f()  #> f=~m.py:f|a.py:f
            import typing
            if typing.TYPE_CHECKING:
                from m import f as g
            x: g  #> g=m.py:f
        """,
    },
    "missing modules": {
        "p/__init__.py": "",
        "a.py": """
            import torch  #> torch=outside
            from p import nothing  #> p=p/__init__.py nothing=unknown
            from p.gone import x  #> gone=outside x=outside
            from .gone import y  #> y=unknown
            torch.f()  #> f=outside
            x()  #> x=outside
        """,
    },
    "modules that import each other": {
        "a.py": "from b import g\ndef f():\n    g()  #> g=b.py:g\n",
        "b.py": "from a import f\ndef g():\n    f()  #> f=a.py:f\n",
        "c.py": "from d import x\n",
        "d.py": "from c import x\nx()  #> x=unknown\n",
        "e.py": "from h import *\ndef p(): ...\nq()  #> q=h.py:q\n",
        "h.py": "from e import *\ndef q(): ...\np()  #> p=e.py:p\n",
    },
    "a circle does not hide what one of its modules defines": {
        "a.py": "from b import x\nif A:\n    def x(): ...\n",
        "b.py": "from a import x\n",
        "z.py": "import a, b\na.x()  #> x=a.py:x\nb.x()  #> x=a.py:x\n",
    },
    "a script beside its helper": {
        "tools/helper.py": "def f(): ...\n",
        "tools/run.py": "from helper import f  #> f=tools/helper.py:f\nimport json  #> json=outside\n",
        "tools/json.py": "",
        "pkg/__init__.py": "",
        "pkg/helper.py": "",
        "pkg/inside.py": "import helper  #> helper=outside\n",
    },
    "a package below another folder": {
        "src/one/__init__.py": "",
        "src/one/m.py": "from one.n import f  #> f=src/one/n.py:f\n",
        "src/one/n.py": "def f(): ...\n",
        "alt/two/__init__.py": "",
        "lib/two/__init__.py": "",
        "a.py": "import two  #> two=outside\n",
    },
    "a syntax error": {
        "broken.py": "def f(:\n",
        "a.py": "import broken  #> broken=broken.py\nfrom broken import f  #> f=unknown\nbroken.f()  #> f=unknown\n",
    },
}

SCOPES: dict[str, dict[str, str]] = {
    "locals and parameters are no links": {
        "a.py": """
            def f(): ...
            def g(f, *args, k=f, **kw):  #> f=a.py:f
                f()  #> f=local
                x = k  #> k=local
                for i in args:  #> args=local
                    x = i  #> x=local i=local
                with x as y:
                    del y  #> y=local
                try: ...
                except ValueError as e:
                    raise e  #> e=local
                if (z := kw): return z  #> kw=local z=local
                import os
                return os  #> os=outside
        """,
    },
    "a local hides, also before it is set": {
        "a.py": """
            def f(): ...
            def g():
                f()  #> f=local
                f = 1
            def h():
                def f(): ...
                f()  #> f=a.py:h.f
            f()  #> f=a.py:f
        """,
    },
    "comprehensions and lambdas": {
        "a.py": """
            def f(): ...
            def x(): ...
            a = [x for x in f() if x]  #> x=local f=a.py:f
            b = lambda f: f()  #> f=local
            c = lambda: f()  #> f=a.py:f
            d = {k: x for k, v in x()}  #> k=local x=a.py:x
            e = [y for f in x() for y in f]  #> f=local x=a.py:x
            g = [(last := f) for f in x()]
            last()  #> last=a.py:last
        """,
    },
    "what a class binds its methods do not see": {
        "a.py": """
            def size(): ...
            class A:
                size = size()  #> size=a.py:size
                half = size  #> size=a.py:A.size
                def go(self):
                    return size()  #> size=a.py:size
                other = [size for _ in ()]  #> size=a.py:size
        """,
    },
    "a class that takes the name of its base": {
        "m.py": "class A:\n    def f(self): ...\n",
        "a.py": """
            from m import A
            class A(A):  #> A=m.py:A
                def g(self):
                    self.f()  #> f=m.py:A.f
            A()  #> A=a.py:A
        """,
    },
    "global and nonlocal": {
        "a.py": """
            STATE = None
            def setup(value):
                global STATE
                STATE = value  #> STATE=a.py:STATE@1
                def inner():
                    return STATE  #> STATE=a.py:STATE
            def outer():
                count = 0
                def helper(): ...
                def inner():
                    nonlocal count, helper
                    helper()  #> helper=~a.py:outer.helper
                    helper = None.x
                    count += 1  #> count=local
                    STATE = 2
                    return STATE  #> STATE=local
            def makes():
                global MADE
                MADE = 1
            print(MADE)  #> MADE=a.py:MADE@19
        """,
    },
    "nested functions": {
        "a.py": """
            def outer():
                def helper(): ...
                def other():
                    helper()  #> helper=a.py:outer.helper
                return other  #> other=a.py:outer.other
            helper()  #> helper=unknown
        """,
    },
    "match": {
        "a.py": """
            class P:
                x: int
            def f(v):
                match v:
                    case P(x=q): return q  #> P=a.py:P q=local
                    case [a, *rest]: return rest  #> rest=local
                    case {"k": w, **more}: return more  #> more=local
                    case P() as whole: return whole  #> P=a.py:P whole=local
        """,
    },
    "annotations, also as strings": {
        "m.py": "class A: ...\nclass B: ...\n",
        "a.py": """
            from __future__ import annotations
            from typing import Literal, Optional
            from m import A, B
            def f(x: "A", y: Optional["B"] = None, z: Literal["A"] = "A") -> "list[A]":  #> A=m.py:A B=m.py:B
                v: "B | None" = y  #> B=m.py:B
            w: 'Optional["A"]'  #> A=m.py:A Optional=outside
            u: "not an expression"
        """,
    },
    "decorators": {
        "m.py": "def timed(f): return f\nclass R:\n    def add(self, name): ...\n",
        "a.py": """
            from m import timed, R
            registry = R()
            @timed  #> timed=m.py:timed
            @registry.add("x")  #> registry=a.py:registry add=m.py:R.add
            def f(): ...
        """,
    },
    "overloads, setters and wrapping by hand": {
        "a.py": """
            from typing import overload
            @overload
            def f(x: int): ...
            @overload
            def f(x: str): ...
            def f(x): ...
            def wrap(g): return g
            def h(): ...
            h = wrap(h)  #> wrap=a.py:wrap
            f(h())  #> f=a.py:f@6 h=a.py:h@8
            class A:
                @property
                def p(self): ...
                @p.setter  #> p=a.py:A.p@13
                def p(self, v): ...
            A().p  #> p=a.py:A.p@13
        """,
    },
}

CLASSES: dict[str, dict[str, str]] = {
    "self and its bases": {
        "m.py": "class Base:\n    limit = 3\n    def __init__(self):\n        self.size = 1\n    def run(self): ...\n",
        "a.py": """
            from m import Base
            class A(Base):  #> Base=m.py:Base
                def run(self):
                    super().run()  #> run=m.py:Base.run
                    super().__init__()  #> __init__=m.py:Base.__init__
                def go(self):
                    self.run()  #> run=a.py:A.run
                    self.size += self.limit  #> size=m.py:Base.size limit=m.py:Base.limit
                    self.gone()  #> gone=unknown
            A().go()  #> go=a.py:A.go
            A.limit  #> limit=m.py:Base.limit
            A.size  #> size=unknown
        """,
    },
    "where an attribute is defined": {
        "a.py": """
            class A:
                declared: int
                plain = None
                def setup(self):
                    self.late = 1  #> late=a.py:A.late@8
                    self.plain = 2  #> plain=a.py:A.plain@3
                def __init__(self):
                    self.late = None
                    self.declared = 1  #> declared=a.py:A.declared@2
                    self.x, self.y = 1, 2
                def use(self):
                    return self.late, self.x, self.y  #> late=a.py:A.late@8 x=a.py:A.x@10 y=a.py:A.y@10
        """,
    },
    "cls and static methods": {
        "a.py": """
            class A:
                @classmethod
                def make(cls):
                    cls.make()  #> make=a.py:A.make
                    return cls()
                @staticmethod
                def free(self):
                    self.make()  #> make=unknown
                def __new__(cls): return cls.free(1)  #> free=a.py:A.free
            A.make().free()  #> make=a.py:A.make free=a.py:A.free
        """,
    },
    "self reassigned": {
        "a.py": """
            class A:
                def f(self): ...
                def g(self, other):
                    self = other
                    self.f()  #> f=~a.py:A.f
                    self.made = 1
                    self.gone()  #> gone=unknown
                def h(self):
                    def inner(self):
                        self.f()  #> f=unknown
                    def closed():
                        self.f()  #> f=a.py:A.f
                def made_elsewhere(self):
                    return self.made  #> made=unknown
        """,
    },
    "a diamond": {
        "a.py": """
            class Top:
                def f(self): ...
                def g(self): ...
            class Left(Top):
                def g(self):
                    super().g()  #> g=~a.py:Top.g|a.py:Right.g
                def h(self):
                    super().f()  #> f=~a.py:Top.f|a.py:Right.f
            class Right(Top):
                def f(self): ...
                def g(self): ...
            class Bottom(Left, Right):
                def k(self):
                    self.f()  #> f=a.py:Right.f
                    self.g()  #> g=a.py:Left.g
                    super(Left, self).g()  #> g=~a.py:Top.g|a.py:Right.g
        """,
    },
    "an order that Python refuses": {
        "a.py": """
            class A:
                def f(self): ...
            class B(A): ...
            class C(A, B):
                def g(self): self.f()  #> f=a.py:A.f
        """,
    },
    "bases that inherit from each other": {
        "a.py": "from b import B\nclass A(B):\n    def f(self): self.g()  #> g=b.py:B.g\n",
        "b.py": "from a import A\nclass B(A):\n    def g(self): self.f()  #> f=~a.py:A.f\n",
    },
    "a base from another package": {
        "a.py": """
            import torch
            class Module(torch.nn.Module):
                def own(self): ...
                def go(self):
                    self.own()  #> own=a.py:Module.own
                    self.parameters()  #> parameters=outside
            class Mixed(torch.nn.Module, Module):
                def go(self): self.own()  #> own=~a.py:Module.own
        """,
    },
    "a base that is one of two": {
        "a.py": """
            class One:
                def f(self): ...
            class Two: ...
            if FLAG:
                Base = One
            else:
                Base = Two
            class A(Base):  #> Base=a.py:Base
                def g(self): self.f()  #> f=~a.py:One.f
        """,
    },
    "bare bases": {
        "a.py": """
            from abc import ABC
            from typing import Generic, TypeVar
            T = TypeVar("T")
            class Two:
                def f(self): ...
            class A(ABC, Generic[T], Two):  #> T=a.py:T
                def g(self):
                    self.f()  #> f=a.py:Two.f
                    self.missing()  #> missing=unknown
            class B(A[int]): ...  #> A=a.py:A
            B().f()  #> f=a.py:Two.f
        """,
    },
    "names with two underscores": {
        "a.py": """
            class A:
                def __hidden(self): ...
                def f(self): self.__hidden()  #> __hidden=a.py:A.__hidden
            class B(A):
                def g(self): self.__hidden()  #> __hidden=unknown
        """,
    },
    "properties and class attributes": {
        "a.py": """
            from functools import cached_property
            class Part:
                def f(self): ...
            class A:
                kinds = Part
                part = Part()
                @property
                def one(self) -> Part: ...
                @cached_property
                def two(self): return Part()
                def three(self): return Part()
                def go(self):
                    self.one.f()  #> one=a.py:A.one f=a.py:Part.f
                    self.two.f()  #> f=a.py:Part.f
                    self.three().f()  #> f=a.py:Part.f
                    self.three.f()  #> f=outside
                    self.part.f()  #> f=a.py:Part.f
                    self.kinds.f(1)  #> f=a.py:Part.f
                    self.__class__.one  #> one=a.py:A.one
                    type(self).part.f()  #> f=a.py:Part.f
        """,
    },
    "a method that an instance replaces": {
        "a.py": """
            class A:
                def f(self): ...
                def __init__(self, g): self.f = g
                def go(self): self.f()  #> f=~a.py:A.f
        """,
    },
    "what only subclasses have": {
        "a.py": """
            class A:
                def go(self):
                    self.f()  #> f=~a.py:B.f
                    self.g()  #> g=~a.py:B.g|a.py:C.g
            class B(A):
                def f(self): ...
                def g(self): ...
            class C(A):
                def g(self): ...
        """,
    },
    "fields of data classes": {
        "a.py": """
            from dataclasses import dataclass
            @dataclass
            class Config:
                size: int = 1
                def run(self): ...
            @dataclass(frozen=True)
            class More(Config):
                depth: int = 2
            @dataclass
            class Own:
                size: int
                def __init__(self, size): ...
            @dataclass
            class Loose:
                size: int
                def __init__(self, named, **others): ...
            Loose(size=1, named=2)  #> size=~a.py:Loose.size named=outside
            def f(size): ...
            More(size=1, depth=2)  #> size=a.py:Config.size depth=a.py:More.depth
            More(run=1)  #> run=outside
            Own(size=1)  #> size=outside
            f(size=1)  #> size=outside
        """,
    },
}

VALUES: dict[str, dict[str, str]] = {
    "by annotation": {
        "m.py": "class A:\n    def f(self): ...\nclass B:\n    def f(self): ...\n    def g(self): ...\n",
        "a.py": """
            from typing import Any, Callable, Dict, List, Optional, Tuple, Type, Union
            import torch
            from m import A, B
            Either = Union[A, B]
            def f(a: A, b: Optional[B], c: A | B, d: torch.Tensor, e: Any, g: "A", *rest: B, **named: A):
                a.f()  #> f=m.py:A.f
                b.g()  #> g=m.py:B.g
                c.f()  #> f=~m.py:A.f|m.py:B.f
                c.g()  #> g=~m.py:B.g
                d.f()  #> f=outside
                e.f()  #> f=unknown
                g.f()  #> f=m.py:A.f
                rest[0].g()  #> g=m.py:B.g
                named["x"].f()  #> f=m.py:A.f
            def h(a: List[A], b: Dict[str, B], c: Tuple[A, B], d: Type[A], e: Either,
                  g: Callable[[], A], i: tuple[B, ...]):
                a[0].f()  #> f=m.py:A.f
                a[1:][0].f()  #> f=m.py:A.f
                b["k"].g()  #> g=m.py:B.g
                c[1].g()  #> g=m.py:B.g
                c[-2].f()  #> f=m.py:A.f
                d().f()  #> f=m.py:A.f
                e.f()  #> f=~m.py:A.f|m.py:B.f
                g().f()  #> f=outside
                i[3].g()  #> g=m.py:B.g
                for one in a: one.f()  #> f=m.py:A.f
                for k, v in b.items(): v.g()  #> g=m.py:B.g
                for n, (x, y) in enumerate(zip(a, b.values())): x.f(), y.g()  #> f=m.py:A.f g=m.py:B.g
        """,
    },
    "by assignment": {
        "m.py": "class A:\n    def f(self): ...\n    def g(self): ...\nclass B:\n    def g(self): ...\n",
        "a.py": """
            from m import A, B
            def f(flag, other):
                a = A()
                a.f()  #> a=local f=m.py:A.f
                b = None
                if flag:
                    b = A()
                b.f()  #> f=m.py:A.f
                c = A() if flag else B()
                c.g()  #> g=~m.py:A.g|m.py:B.g
                d = other or A()
                d.f()  #> f=~m.py:A.f
                e, (u, *h) = A(), (B(), 1, 2)
                e.f(), h.q()  #> f=m.py:A.f q=unknown
                u.g()  #> g=m.py:B.g
                i = [A() for _ in range(3)]
                i[0].f()  #> f=m.py:A.f
                j = {"k": B()}.get("k")
                j.g()  #> g=m.py:B.g
                k = unknown_call()
                k.f()  #> f=unknown
        """,
    },
    "what lists are filled with": {
        "a.py": """
            class Layer:
                def run(self): ...
            class Other:
                def run(self): ...
            class Stack:
                def __init__(self, layers):
                    self.layers = []
                    self.named = {}
                    self.mixed = [Layer()]
                    for _ in range(3):
                        self.layers.append(Layer())
                    self.named["x"] = Layer()
                    self.mixed.append(Other())
                def go(self):
                    for layer in self.layers: layer.run()  #> run=a.py:Layer.run
                    self.named["x"].run()  #> run=a.py:Layer.run
                    self.mixed[0].run()  #> run=~a.py:Layer.run|a.py:Other.run
                    local = []
                    local.append(Layer())
                    local[0].run()  #> run=a.py:Layer.run
                    empty = []
                    empty[0].run()  #> run=unknown
        """,
    },
    "through other packages": {
        "a.py": """
            import itertools, torch
            from itertools import chain
            class Layer:
                def run(self): ...
            class Stack:
                def __init__(self, given: list[list[Layer]], bare: list, plain: dict):
                    self.layers = torch.nn.ModuleList([Layer() for _ in range(3)])
                    self.row = torch.nn.Sequential(Layer(), Layer())
                    self.flat = list(itertools.chain(*given))
                    self.more = chain(given[0], given[1])
                    self.made = torch.f(Layer())
                    self.other = torch.f(1)
                    for layer in self.layers: layer.run()  #> run=a.py:Layer.run
                    self.layers[0].run()  #> run=a.py:Layer.run
                    self.row[1].run()  #> run=a.py:Layer.run
                    self.flat[0].run()  #> run=a.py:Layer.run
                    for layer in self.more: layer.run()  #> run=a.py:Layer.run
                    self.made.run()  #> run=unknown
                    self.other.run()  #> run=outside
                    bare[0].run(), plain["x"].run()  #> run=unknown
        """,
    },
    "through calls": {
        "a.py": """
            import contextlib
            from copy import deepcopy
            from typing import cast
            class A:
                def __enter__(self): return self
                def __exit__(self, *a): ...
                def f(self): ...
                def me(self) -> "A": return self
            def make() -> A: ...
            def infer(): return A()
            def nothing(): ...
            @contextlib.contextmanager
            def ctx() -> A: yield A()
            @something
            def wrapped(): return A()
            async def later() -> A: ...
            def forever(): return forever()
            def f(x):
                make().me().f()  #> me=a.py:A.me f=a.py:A.f
                infer().f()  #> f=a.py:A.f
                nothing().f()  #> f=unknown
                wrapped().f()  #> f=unknown
                forever().f()  #> f=unknown
                with A() as a: a.f()  #> f=a.py:A.f
                with ctx() as b: b.f()  #> f=unknown
                deepcopy(make()).f()  #> f=a.py:A.f
                cast("A", x).f()  #> f=unknown
                cast(A, x).f()  #> f=a.py:A.f
            async def g(): (await later()).f()  #> f=a.py:A.f
        """,
    },
    "isinstance": {
        "m.py": "class A:\n    def f(self): ...\nclass B:\n    def f(self): ...\n    def g(self): ...\n",
        "a.py": """
            from m import A, B
            import torch
            def f(x, y, z, w, other):
                x.f()  #> f=unknown
                if isinstance(x, A) and x.f():  #> f=m.py:A.f
                    x.f()  #> f=m.py:A.f
                    def later(): x.f()  #> f=unknown
                    g = lambda: x.f()  #> f=m.py:A.f
                elif isinstance(x, (A, B)):
                    x.f()  #> f=~m.py:A.f|m.py:B.f
                    x.g()  #> g=~m.py:B.g
                elif isinstance(x, torch.Tensor):
                    x.f()  #> f=outside
                else:
                    x.f()  #> f=unknown
                x.f()  #> f=unknown
                if not isinstance(y, B) or not isinstance(z.part, A):
                    y.f()  #> f=unknown
                    return
                y.f(), z.part.f  #> y=local part=unknown
                z.part.f()  #> f=m.py:A.f
                y.g()  #> g=m.py:B.g
                z.part = other
                z.part.f()  #> f=unknown
                y = other
                y.f()  #> f=unknown
                assert isinstance(w, B)
                w.g()  #> g=m.py:B.g
                for _ in other:
                    w.g()  #> g=unknown
                    w = other
                w.g()  #> g=unknown
                [v.f() for v in other if isinstance(v, A)]  #> f=m.py:A.f
                u = other.g() if not isinstance(other, B) else other.f()  #> g=unknown f=m.py:B.f
                if isinstance(other, B):
                    (other.n, other) = 1, 2
                    other.g()  #> g=unknown
        """,
    },
    "singletons set by class methods": {
        "a.py": """
            class Manager:
                ONE = None
                @classmethod
                def get(cls):
                    if cls.ONE is None:
                        cls.ONE = Manager()
                    return cls.ONE  #> ONE=a.py:Manager.ONE
                @classmethod
                def made(cls):
                    cls.OTHER = 1
                    return cls.OTHER  #> OTHER=a.py:Manager.OTHER
                def run(self): ...
            Manager.get().run()  #> run=a.py:Manager.run
        """,
    },
    "only the name is left": {
        "m.py": """
            class A:
                def find_me(self): ...
                def log(self): ...
                def two_of(self): ...
                def shared_one(self): ...
                def is_integer(self): ...
                @property
                def a_prop(self): ...
            class B:
                def two_of(self): ...
            class C(A):
                def shared_one(self): ...
        """,
        "a.py": """
            import torch
            def f(x, y: torch.Tensor):
                x.find_me()  #> find_me=~m.py:A.find_me
                x.find_me  #> find_me=unknown
                x.log()  #> log=unknown
                x.two_of()  #> two_of=unknown
                x.shared_one()  #> shared_one=~m.py:A.shared_one
                x.a_prop()  #> a_prop=unknown
                x.is_integer()  #> is_integer=unknown
                y.find_me()  #> find_me=outside
                torch.x.find_me()  #> find_me=outside
        """,
    },
    "what the command line says": {
        "m.py": """
            from dataclasses import dataclass
            def add(parser):
                parser.add_argument("-s", "--seq-length", "--sequence", help="How long.")
                parser.add_argument("--renamed", dest="other_name")
                parser.add_argument("positional")
                parser.add_argument("--twice")
                parser.add_argument("--twice")
            @dataclass
            class Config:
                train_iters: int
            @dataclass
            class _Key:
                rank: int
        """,
        "a.py": """
            def f(args, opts):
                args.seq_length  #> seq_length=~m.py:--seq-length
                get_args().other_name  #> other_name=~m.py:--renamed
                args.train_iters = 1  #> train_iters=~m.py:Config.train_iters
                args.positional  #> positional=unknown
                args.twice  #> twice=unknown
                args.rank  #> rank=unknown
                opts.seq_length  #> seq_length=unknown
        """,
        "b.py": """
            import c  #> c=c.py
            def f(args, x):
                args.twice  #> twice=~c.py:--twice
                x.found_near()  #> found_near=~c.py:A.found_near
        """,
        "c.py": """
            class A:
                def found_near(self): ...
            parser.add_argument("--twice")
        """,
        "d.py": "class B:\n    def found_near(self): ...\n",
    },
}

CASES = {**NAMES, **SCOPES, **CLASSES, **VALUES}
