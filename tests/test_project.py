"""What the files around the code promise: that commands exist, pins agree, and nothing of one machine is kept."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "README.en.md", "CONTRIBUTING.md", "docs/about/architecture.md", "docs/about/publish.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tracked() -> list[str]:
    """Every file in git's keeping, and new ones that it would take."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in run.stdout.split("\0") if name and (ROOT / name).is_file()]


def targets() -> set[str]:
    return set(re.findall(r"(?m)^([a-z-]+):(?!=)", read("Makefile")))


# Makefile and documents


def test_make_help_lists_every_target():
    run = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"(?m)^  ([a-z-]+) +\S", run.stdout))
    assert listed == targets()
    phony = re.search(r"(?m)^\.PHONY: (.*)", read("Makefile"))[1].split()
    assert set(phony) == targets()


@pytest.mark.parametrize("page", [*PAGES, ".ci/run", ".github/workflows/ci.yml", ".github/workflows/pages.yml"])
def test_named_make_targets_exist(page):
    code = re.findall(r"```.*?```|`[^`\n]+`", read(page), re.S) if page.endswith(".md") else [read(page)]
    named = {name for text in code for name in re.findall(r"\bmake ([a-z]+)\b", text)}
    assert named <= targets()


def test_readme_shows_the_plain_command_behind_each_target():
    readme = read("README.md")
    for target in ("serve", "site", "check", "lock", "test", "demo", "lint"):
        recipe = re.search(rf"(?m)^{target}:.*\n((?:\t.*\n)+)", read("Makefile"))[1]
        program = re.search(r"\$\(BIN\)/((?:python -m )?\S+(?: (?:serve|build|check|lock)\b)?)", recipe)[1]
        assert f".venv/bin/{program}" in readme, target


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_to_files(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", read(page), flags=re.S)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", link):
            assert (ROOT / page).parent.joinpath(link).exists(), link


@pytest.mark.parametrize("name", ["runnable.demo", "runnable.megatron_cpu"])
def test_modules_that_make_runs_exist(name):
    path = ROOT / name.replace(".", "/")
    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()


# Pins


def constraints() -> dict[str, str]:
    lines = [line for line in read("constraints.txt").splitlines() if not line.startswith("#")]
    assert lines == sorted(lines, key=str.lower)
    return {canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in lines)}


def requirements() -> list[Requirement]:
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return [Requirement(line) for group in groups for line in group]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_requirement_is_pinned_to_a_version_it_allows(requirement):
    pin = constraints().get(canonicalize_name(requirement.name))
    assert pin, f"{requirement.name} is not in constraints.txt: make pin"
    assert requirement.specifier.contains(pin)


def test_constraints_name_versions_only():
    for name, pin in constraints().items():
        assert re.fullmatch(r"[a-z0-9\-]+", name), name
        assert re.fullmatch(r"[0-9][0-9a-z.]*", pin), f"{name}=={pin}"


def test_version_agrees():
    assert re.search(rf"(?m)^## {re.escape(PROJECT['version'])}\b", read("CHANGELOG.md"))


def test_licence_agrees():
    assert PROJECT["license"] == "MIT"
    assert read("LICENSE").startswith("MIT License\n")


# Automation


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / ".github/workflows").glob("*.yml")))
def test_workflows_parse_and_pin_their_actions(name):
    workflow = yaml.safe_load(read(f".github/workflows/{name}"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"] != "ubuntu-latest"
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.search(r"@(v\d+|[0-9a-f]{40})$", step.get("uses", "x@v1")), step


def test_ci_script_runs_lint_site_and_test():
    script = read(".ci/run")
    subprocess.run(["bash", "-n", ROOT / ".ci/run"], check=True)
    assert set(re.search(r"for target in (.*);", script)[1].split()) == {"lint", "site", "test"}


def test_ci_script_fails_when_any_step_fails(tmp_path):
    """Each step runs, and the first failure is the exit status."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/run").write_text(read(".ci/run"))
    (tmp_path / "Makefile").write_text("lint:\n\t@echo linted\nsite:\n\t@exit 3\ntest:\n\t@echo tested\n")
    run = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2, "make's own status for a failed recipe"
    assert "linted" in run.stdout
    assert "tested" in run.stdout
    (tmp_path / "Makefile").write_text("lint site test:\n\t@echo $@\n")
    assert subprocess.run(["bash", ".ci/run"], cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_pre_commit_hooks_are_local_and_name_installed_programs():
    hooks = [h for repo in yaml.safe_load(read(".pre-commit-config.yaml"))["repos"] for h in repo["hooks"]]
    assert {repo["repo"] for repo in yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]} == {"local"}
    programs = {Path(hook["entry"].split()[0]).name for hook in hooks}
    assert programs == {"ruff", "mypy", "sourcepanel"}
    assert "sourcepanel" in PROJECT["scripts"]


# Nothing of one machine

KEPT_OUT = {
    "a path of one machine": "|".join(["/work" + "/(main|shared|plan)", "/root" + "/", "/opt" + "/(wheels|pypi)"]),
    "the address of a package index": "|".join(
        [r"pypi\.org", r"pythonhosted\.org", r"registry\.npmjs", r"deb\.debian\.org", r"download\.pytorch\.org"]
    ).replace(r"\.", r"[.]"),
}


def findings(text: str) -> list[str]:
    return [
        f"{number}: {what}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in KEPT_OUT.items()
        if re.search(pattern, line)
    ]


def test_no_file_tells_of_the_machine_it_was_made_on():
    names = tracked()
    assert "Makefile" in names
    own = Path(__file__).relative_to(ROOT).as_posix()
    found = {}
    for name in names:
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if name != own and (lines := findings(text)):
            found[name] = lines
    assert found == {}


@pytest.mark.parametrize(
    "line", ["see /root" + "/.cache", "--index-url https://pypi.org" + "/simple", "cd /work" + "/main"]
)
def test_that_check_catches(line):
    assert findings(line)
