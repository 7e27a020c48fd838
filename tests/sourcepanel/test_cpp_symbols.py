"""Definitions of C++ and CUDA files, by name and line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourcepanel.cpp_symbols import SUFFIXES, parse_cpp
from sourcepanel.lock import RepositoryLock
from sourcepanel.reference import parse_code
from sourcepanel.source import Source
from sourcepanel.verify import Verifier
from tests.support.memory import TINY, MemorySnapshot

KERNEL = """\
#include <vector>
namespace engine { namespace detail {

template <typename T>
__global__ void scale_kernel(T* data,
                             const int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { data[i] *= 2; }
}

}  // namespace detail

struct Base { virtual ~Base() = default; };

class Scaler : public Base {
 public:
  explicit Scaler(int n) : n_(n) {}
  int size() const { return n_; }
  std::vector<int>& items();
  bool operator==(const Scaler& other) const { return n_ == other.n_; }

 private:
  int n_;
};

std::vector<int>& Scaler::items() {
  auto twice = [](int x) { return 2 * x; };
  static std::vector<int> kept;
  return kept;
}

enum class Mode { kFast, kExact };

}  // namespace engine

static const char* name(int i) {
  return "x";
}

int declared_only(int);

#ifdef USE_IT
int chosen() { return 1; }
#else
int chosen() { return 2; }
#endif
"""


def test_definitions_and_their_lines() -> None:
    found = {(s.name, s.kind): (s.start, s.line, s.end) for s in parse_cpp(KERNEL).symbols if s.name != "chosen"}
    assert found == {
        ("engine.detail.scale_kernel", "function"): (4, 5, 9),
        ("engine.Base", "class"): (13, 13, 13),
        ("engine.Base.~Base", "method"): (13, 13, 13),
        ("engine.Scaler", "class"): (15, 15, 24),
        ("engine.Scaler.Scaler", "method"): (17, 17, 17),
        ("engine.Scaler.size", "method"): (18, 18, 18),
        ("engine.Scaler.operator==", "method"): (20, 20, 20),
        ("engine.Scaler.items", "method"): (26, 26, 30),
        ("engine.Mode", "class"): (32, 32, 32),
        ("name", "function"): (36, 36, 38),
    }


def test_a_name_in_both_arms_of_a_condition_is_ambiguous() -> None:
    assert [s.start for s in parse_cpp(KERNEL).get("chosen")] == [43, 45]


def test_signatures() -> None:
    table = parse_cpp(KERNEL)
    (kernel,) = table.get("engine.detail.scale_kernel")
    assert kernel.signature == "(T* data, const int n) -> void"
    (scaler,) = table.get("engine.Scaler")
    assert scaler.signature == "(public Base)"
    (name,) = table.get("name")
    assert name.signature == "(int i) -> char"


def test_the_innermost_definition_encloses() -> None:
    table = parse_cpp(KERNEL)
    assert table.enclosing(7, 7).name == "engine.detail.scale_kernel"
    assert table.enclosing(28, 28).name == "engine.Scaler.items"
    assert table.enclosing(40, 40) is None


@pytest.mark.parametrize(
    "text", ["", "}}}} {{{", "int f( {", "\0", "template <", "#if\n", "\ud800", "def f():\n    pass\n"]
)
def test_what_is_no_cpp_does_no_harm(text: str) -> None:
    assert parse_cpp(text).parsed


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(["class A {", "};", "int f() {", "}", "namespace n {", "template <typename T>", "x::y", ";"])
    )
)
def test_lines_lie_inside_the_file(parts: list[str]) -> None:
    text = "\n".join(parts)
    for symbol in parse_cpp(text).symbols:
        assert 1 <= symbol.start <= symbol.line <= symbol.end <= max(1, len(parts))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_reference_to_a_kernel_resolves(suffix: str) -> None:
    path = f"csrc/kernel{suffix}"
    files = {path: KERNEL.encode()}
    source = Source(TINY, snapshot=MemorySnapshot(files), locked=None)
    verifier = Verifier({"tiny": source}, level=lambda code: None)
    place = verifier.place(parse_code(f"{path}::engine::Scaler::items", [TINY]))
    assert (place.target.kind, place.target.start, place.target.end) == ("definition", 26, 30)
    wrong = verifier.place(parse_code(f"{path}::engine.Scaler.item", [TINY]))
    assert "did you mean engine.Scaler.items" in wrong.problems[0].fix
    assert RepositoryLock(url="u", ref="r", commit="1" * 40, links={"k": place.facts}).links["k"].symbol
