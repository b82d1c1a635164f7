# Whether every class is small enough to be read as one thing: at most 15 data members, and its
# functions in two files at most, a header and a source. tests/DECISIONS.md says what counts.
"""Usage: classes_test.py   (exit code 1 and a line for each problem)"""

import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["sim", "topology", "strategies", "kernels", "tools"]
CODE, HEADERS = {".cpp", ".hpp", ".cu", ".cuh"}, {".hpp", ".cuh"}
DATA_MEMBERS, FILES = 15, 2
# Larger ones, by folder and name, with the reason. One that is needed no longer is a problem, too.
EXCEPTIONS = {
    "sim/program Program": "the columns of one value, which are written and read together",
    "sim/engine FlowNetwork": "two over: its scratch memory stays between calls",
    "sim/program Reader": "two over: tables of names while a file is read",
    "sim/simgrid Run": "two over: what SimGrid's callbacks must reach",
    "strategies/collectives CollectiveRehearsal": "its bound without events is a file of its own",
    "strategies/binding UpdateSite": "compressed gradients are a file of their own",
    "strategies/servers ServerLowering": "being rewritten: remove this line then",
}

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                      r"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
TYPE = re.compile(r"(?:template )?(?:class|struct) ([\w:]+)(?: final)?(?: ?:(?!:).*)? ?{}")
SPACE = re.compile(r"(?:inline )?(?:namespace|extern)\b")
NO_DATA = re.compile(r"(?:using|typedef|friend|static|enum|class|struct|union|template|"
                     r"static_assert)\b")
DEFINED = re.compile(r"[^=(]*?([\w:]+)::(?:~?\w+|operator[^(]*(?:\(\))?)\(")
# What any value may have: functions that do not change it, operators, how it ends.
OF_VALUES = re.compile(r"\) const\b|\boperator\b|= (?:default|delete)$|^~|^(?:static|friend)\b")


def statements(text):
    """(words, block) of each statement of a scope. A function or a type ends with its block; braces
    of initial values belong to their statement."""
    words, begin, braces, brackets = "", 0, 0, 0
    for at, character in enumerate(text):
        brackets += (character == "(") - (character == ")")
        if brackets > 0:
            continue
        if character == "{":
            braces += 1
            if braces == 1:
                words, opened, begin = words + text[begin:at] + "{}", at, at
        elif character == "}":
            braces -= 1
            if braces == 0:
                block, begin = text[opened + 1:at], at + 1
                if not re.match(r"\s*[,;{]", text[at + 1:]):
                    yield plain(words), block
                    words = ""
        elif character == ";" and braces == 0:
            words += text[begin:at]
            yield plain(words), block if words.endswith("{}") else ""
            words, begin = "", at + 1


def plain(words):
    """Without what a name may carry: template arguments, attributes, alignment."""
    words = re.sub(r"\b(?:public|protected|private) ?:(?!:)|\[\[.*?\]\]|\balignas ?\([^)]*\)", " ",
                   words)
    words = " ".join(words.split())
    while (shorter := re.sub(r"(?<=[\w>])\s?<[^<>]*>", "", words)) != words:
        words = shorter
    return words.strip()


def data_members(words):
    """How many of them a statement of a class declares."""
    if NO_DATA.match(words) and not re.match(r"(?:struct|class|enum|union)\b.*{}\s*\w", words):
        return 0
    if "operator" in words or "(" in re.sub(r"\(\*", "", words.split("=")[0].split("{")[0]):
        return 0
    while (shorter := re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", words)) != words:
        words = shorter
    return words.count(",") + 1 if words else 0


def members(name, block):
    """(data members, whether it is more than a value) of a class or struct. A value shows all of
    its data, and has no function that changes it but constructors and operators."""
    data, acts = 0, False
    for words, _ in statements(block):
        count = data_members(words)
        data += count
        if count == 0 and "(" in words and not NO_DATA.match(words):
            own = re.match(rf"(?:explicit |constexpr )*{name}\(", words)
            acts |= own is None and OF_VALUES.search(words) is None
    return data, acts or re.search(r"\bprivate ?:", block) is not None


def types(text, outer=""):
    """(name, block) of every class and struct, those in others as Outer::Inner."""
    for words, block in statements(text):
        if named := TYPE.match(words):
            yield outer + named[1], block
            yield from types(block, outer + named[1] + "::")
        elif SPACE.match(words):
            yield from types(block, outer)


def definitions(text):
    """The types whose member functions a text defines behind their names, as in void A::f() {}."""
    for words, block in statements(text):
        if SPACE.match(words):
            yield from definitions(block)
        elif "(" in words and (defined := DEFINED.match(words)):
            yield defined[1]


def unread(text):
    """Types that begin a line, and that types() does not find."""
    heads = re.findall(r"^(?:class|struct) (?:alignas\(\w+\) )?([\w:]+)[^;=()]*{", text, re.M)
    return set(heads) - {name for name, _ in types(text)}


def large_types(texts):
    """(folder and name, message) of each that breaks a rule; `texts` by file."""
    texts = {file: NOT_CODE.sub(" ", text) for file, text in texts.items()}
    declared, homes = {}, {}  # by name: files that declare the type; headers and sources of its own
    for file, text in texts.items():
        for name in unread(text):
            yield f"{Path(file).parent} {name}", f"{file}: {name} is not understood by this test"
        for name, block in types(text):
            declared.setdefault(name, set()).add(file)
            data, acts = members(name.split("::")[-1], block)
            if acts and data > DATA_MEMBERS:
                yield f"{Path(file).parent} {name}", f"{file}: {name} has {data} data members"
    for file, text in texts.items():
        for name in definitions(text):
            if file not in declared.get(name, ()) or Path(file).suffix in HEADERS:
                homes.setdefault(name, set()).add(file)
    for name, files in homes.items():
        files |= {file for file in declared.get(name, ()) if Path(file).suffix in HEADERS}
        if len(files) > FILES:
            first = min(files, key=lambda file: Path(file).suffix not in HEADERS)
            yield (f"{Path(first).parent} {name}",
                   f"{first}: {name} is in {len(files)} files: {' '.join(sorted(files))}")


def self_check():
    """Each rule must fire on a bad sample, and not on a good one."""
    assert unread("class A {\n")

    many = "".join(f"  int a{i} = f(1, 2), b{i}{{}};\n" for i in range(8))

    def found(**files):
        return [message for _, message in
                large_types({name.replace("_", "."): text for name, text in files.items()})]
    assert not found(a_hpp="struct A {\n" + many + "  int f() const;\n};\n")
    assert not found(a_hpp="class A {\n public:\n  A();\n  void f(int b = 3, int c = 4);\n\n"
                           " private:\n  std::map<int, void(int, int)> a, b;\n};\n")
    for bad in ("class alignas(64) A {\n private:\n" + many + "};\n",
                "struct A {\n  void f();\n" + many + "};\n",
                "namespace n {\ntemplate <class T>\nstruct A : B<T> {\n  struct C {\n    int c;\n"
                "  };\n  void f() { if (a) { b; } }\n" + many + "};\n}\n"):
        assert found(a_hpp=bad) == ["a.hpp: A has 16 data members"], (bad, found(a_hpp=bad))
    header = "namespace n {\nclass A {\n  void f();\n};\n}\n"
    source = "namespace n {\nint A::f(int (*g)(int)) {}\n}\n"
    assert not found(a_hpp=header, a_cpp=source)
    assert not found(a_hpp=header, a_cpp=source, b_cpp=header + source)  # another A, of b.cpp alone
    assert len(found(a_hpp=header, a_cpp=source, b_cpp=source)) == 1
    assert len(found(a_hpp=header, a_cpp="A::A() : b{1}, c{2} {}\n", b_cpp="A::~A() = default;\n"
                     "bool A::operator()(int) {}\n")) == 1


def main():
    self_check()
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
             for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in CODE}
    large = collections.defaultdict(list)
    for key, message in large_types(texts):
        large[key].append(message)
    lines = [line for key, messages in large.items() if key not in EXCEPTIONS for line in messages]
    lines += [f"{key} needs no exception any more" for key in EXCEPTIONS if key not in large]
    for line in lines:
        print(line)
    print(f"classes: {len(texts)} files, {len(EXCEPTIONS)} exceptions, {len(lines)} problems")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
