"""Instances: a user's own input and transformer, read from JSON (`attention-instance/1`) without rounding anything.

    {"format": "attention-instance/1", "kernel": "exp2", "mask": "causal", "X": [["1/2", -3], [0, 0.25]],
     "layers": [{"heads": [{"WQ": [[1, 0], [0, 1]], "WK": [[1, 0], [0, 1]], "WV": [[1, 0], [0, 1]]}],
                 "mlp": {"round_bits": 0}}]}

The transformer is that of Definition 2.2 with a mask of Definitions 2.3 to 2.5: head h of H acts on the h-th slice of
d/H columns. Two more things may be asked for: a list of maps as the MLP, and `"residual": true`, which changes the
paper's model: every layer then applies its MLP to the sum of its attention output and its input.

A number is a JSON integer, a JSON decimal, or a string such as "-1/3" or "2.5e-3"; all are read exactly, and no float
is ever made.

Whatever is wrong with a file, the answer is a `RequestError` of one line that says what is wrong, where in the file,
and what would be right. Sizes are checked before the work that they would cause.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from verify.arithmetic.interface import Kind
from verify.arithmetic.matrix import RationalMatrix
from verify.errors import RequestError
from verify.transformer.attention import CAUSAL, NO_MASK, Head, Mask
from verify.transformer.model import Layer, Transformer
from verify.transformer.token_map import TokenMap, Wire

FORMAT = "attention-instance/1"
"""The `format` of the files read here."""

MOST_BYTES = 64 * 2**20
"""Size of a file."""

MOST_DIGITS = 4000
"""Digits of a numerator, a denominator or a decimal, as written and in lowest terms (Python itself stops at 4300)."""

MOST_EXPONENT = 4000
"""Size of the exponent of a decimal."""

MOST_EXPONENTS = 2**26
"""Sum of the sizes of all exponents, since `1e3999` is short in the file and long in memory."""

MOST_ENTRIES = 2**24
"""Entries of X (N times d), of X after any affine map, and, for one token, of the inputs of all maps together."""

MOST_LAYERS = 4096
"""Number of layers."""

MOST_ROUND_BITS = 4096
"""Size of `round_bits`."""

Kernel: TypeAlias = Literal["exp", "exp2"]
"""The weight of a score s: `exp(s)` or `2^s`."""

_KERNELS: Mapping[str, Kernel] = {"exp": "exp", "exp2": "exp2"}

Rows: TypeAlias = tuple[tuple[Fraction, ...], ...]
"""Rows of exact rationals, all of the same length."""

Written: TypeAlias = Any
"""A piece of a JSON document, made of dicts, lists, strings and integers."""

Choice = TypeVar("Choice")

_HEAD_KEYS = ("WQ", "WK", "WV")


# --- the maps of which an MLP is made --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rounding:
    """Each entry to the nearest multiple of 2^-bits, ties up: a value becomes a number that the next scores may use."""

    bits: int

    def __call__(self, x: Sequence[Wire]) -> list[Wire]:
        """The map on the wires of one token."""
        return [wire.round(self.bits) for wire in x]

    def written(self) -> Written:
        """The map as the file format writes it."""
        return {"round_bits": self.bits}


@dataclass(frozen=True)
class Affine:
    """x -> x W + b, for a row x of d entries, `W` of shape d x d' and `b` of d' entries."""

    W: RationalMatrix
    b: tuple[Fraction, ...]

    def __call__(self, x: Sequence[Wire]) -> list[Wire | Fraction]:
        """The map on the wires of one token; zeros of W and b cost nothing."""
        results = []
        for column, offset in zip(self.W.columns, self.b, strict=True):
            terms: list[Wire | Fraction] = [x[i] * factor for i, factor in column]
            if offset or not terms:
                terms.append(offset)
            results.append(reduce(operator.add, terms))
        return results

    def written(self) -> Written:
        """The map as the file format writes it."""
        return {"affine": {"W": _written_rows(self.W.rows), "b": _written_row(self.b)}}


Maps: TypeAlias = tuple[Rounding | Affine, ...]
"""The MLP of one layer: maps to be applied in turn; none at all is the identity."""


def _token_map(width: int, maps: Maps, residual: bool) -> TokenMap:
    """The maps on an attention output of this width, which is followed by the layer's own input if `residual`."""

    def apply(x: list[Wire]) -> list[Wire]:
        wires = [output + own for output, own in zip(x[:width], x[width:], strict=True)] if residual else x
        for part in maps:
            wires = TokenMap.trace([wire.kind for wire in wires], part)(wires)
        return wires

    return TokenMap.trace([Kind.VALUE] * width + [Kind.NUMBER] * (width if residual else 0), apply)


# --- instances -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instance:
    """An input X (N x d) and a transformer, as `read_instance` and `parse_instance` make them.

    `mlps` holds the MLP of each layer in the terms of the file; `transformer` holds the same as traced token-wise maps.
    `digest` is the SHA-256 (hexadecimal) of `to_json()`, so it depends on the content and not on how a file spells it.
    Instances are equal when their digests are.
    """

    kernel: Kernel = field(compare=False)
    X: Rows = field(compare=False, repr=False)
    transformer: Transformer = field(compare=False, repr=False)
    mlps: tuple[Maps, ...] = field(compare=False, repr=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", sha256(self.to_json().encode()).hexdigest())

    @property
    def N(self) -> int:
        """Number of tokens: rows of X."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Width of a token: columns of X."""
        return len(self.X[0])

    @cached_property
    def columns(self) -> Rows:
        """X by its columns: d of them, N entries each."""
        return tuple(zip(*self.X, strict=True))

    def to_json(self) -> str:
        """The canonical document, in ASCII and on one line: parsed again, it gives an equal instance.

        Keys stand in the order of the format's description and are never left out; numbers are integers or "p/q" in
        lowest terms; an MLP is "identity", one map, or a list of two or more.
        """
        layers = [
            {
                "heads": [_written_head(head) for head in layer.heads],
                "mlp": _written_maps(maps),
            }
            for layer, maps in zip(self.transformer.layers, self.mlps, strict=True)
        ]
        return json.dumps(
            {
                "format": FORMAT,
                "kernel": self.kernel,
                "mask": _written_mask(self.transformer.mask),
                "X": _written_rows(self.X),
                "layers": layers,
                "residual": self.transformer.layers[0].residual,
            }
        )


def _written_row(row: Sequence[Fraction]) -> Written:
    return [str(x) if x.denominator != 1 else x.numerator for x in row]


def _written_rows(rows: Rows) -> Written:
    return [_written_row(row) for row in rows]


def _written_head(head: Head) -> Written:
    matrices = (head.W_Q, head.W_K, head.W_V)
    return {key: _written_rows(W.rows) for key, W in zip(_HEAD_KEYS, matrices, strict=True)}


def _written_maps(maps: Maps) -> Written:
    match [part.written() for part in maps]:
        case []:
            return "identity"
        case [only]:
            return only
        case several:
            return several


def _written_mask(mask: Mask) -> Written:
    if not mask.causal:
        return "none"
    if mask.window is None:
        return "causal"
    return {"window": mask.window, "sinks": mask.sinks} if mask.sinks else {"window": mask.window}


# --- reading ---------------------------------------------------------------------------------------------------------


def read_instance(path: Path) -> Instance:
    """The instance in the file at `path`. Raises RequestError where the file cannot be read or is not an instance."""
    name = str(path)
    try:
        size, content = path.stat().st_size, b""
        if size <= MOST_BYTES:  # what is not a plain file may still turn out to hold more
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise RequestError(f"cannot be read: {reason}", where=_one_line(name), right="expected a JSON file") from None
    if max(size, len(content)) > MOST_BYTES:
        raise RequestError(
            f"the file is larger than {MOST_BYTES // 2**20} MiB",
            where=_one_line(name),
            right=f"expected at most {MOST_BYTES} bytes",
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"byte {content[error.start]:#04x} at offset {error.start} is not UTF-8",
            where=_one_line(name),
            right="expected a JSON file in UTF-8",
        ) from None
    return parse_instance(text, name)


def parse_instance(text: str, name: str) -> Instance:
    """The instance that `text` describes; `name` stands first in errors. Raises RequestError if it describes none."""
    return _instance(_parse(text, _one_line(name)))


def _instance(root: _Node) -> Instance:
    root.member("format").choice({FORMAT: FORMAT})
    members = root.members(required=("format", "kernel", "mask", "X", "layers"), optional=("residual",))
    kernel = members["kernel"].choice(_KERNELS)
    mask = _mask(members["mask"])
    residual = "residual" in members and members["residual"].boolean()
    X = members["X"]
    N = X.count("row")
    width = X.matrix_width(N)
    rows = X.rows(N, width)
    layers, mlps = [], []
    for node in members["layers"].items("layer", most=MOST_LAYERS):
        parts = node.members(required=("heads",), optional=("mlp",))
        heads = _heads(parts["heads"], width)
        maps, next_width = _maps(parts["mlp"], N, width) if "mlp" in parts else ((), width)
        layers.append(Layer(heads, _token_map(width, maps, residual), residual))
        mlps.append(maps)
        width = next_width
    return Instance(kernel, rows, Transformer(tuple(layers), mask), tuple(mlps))


def _mask(node: _Node) -> Mask:
    if not node.is_object:
        return node.choice({"none": NO_MASK, "causal": CAUSAL}, otherwise="an object with the key window")
    members = node.members(required=("window",), optional=("sinks",))
    sinks = members["sinks"].integer(least=0) if "sinks" in members else 0
    return Mask(causal=True, window=members["window"].integer(least=1), sinks=sinks)


def _heads(node: _Node, width: int) -> tuple[Head, ...]:
    """The heads of a layer whose input has `width` columns."""
    heads = node.items("head")
    if width % len(heads):
        raise node.wrong(
            f"{_counted(len(heads), 'head')} cannot share {_counted(width, 'column')} equally",
            f"expected a number of heads that divides {width}",
        )
    m = width // len(heads)
    return tuple(Head(*(W.matrix(m, m) for W in head.members(required=_HEAD_KEYS).values())) for head in heads)


_MAP = "an object with the key round_bits or affine"


def _maps(node: _Node, N: int, width: int) -> tuple[Maps, int]:
    """The maps of an MLP whose input has `width` columns, and the number of columns that they return for N tokens."""
    maps: list[Rounding | Affine] = []
    for part in node.items("map", least=0) if node.is_array else [node]:
        if not part.is_object:
            part.choice({"identity": None}, otherwise=_MAP if node.is_array else f"{_MAP}, or a list of these")
            continue
        part.spend("the widths of all maps", width, MOST_ENTRIES)
        members = part.members(optional=("round_bits", "affine"))
        if len(members) != 1:
            raise part.wrong(_counted(len(members), "key"), "expected exactly one of round_bits, affine")
        if "round_bits" in members:
            maps.append(Rounding(members["round_bits"].integer(least=-MOST_ROUND_BITS, most=MOST_ROUND_BITS)))
        else:
            affine = members["affine"].members(required=("W", "b"))
            next_width = affine["W"].matrix_width(N)
            maps.append(Affine(affine["W"].matrix(width, next_width), affine["b"].numbers(next_width)))
            width = next_width
    return tuple(maps), width


# --- the document: every check once, every error with its place ------------------------------------------------------


class _Number(str):
    """A JSON number as it is written, NaN and the infinities included."""

    __slots__ = ()


class _Integer(_Number):
    """A JSON number written without point and exponent."""

    __slots__ = ()


class _Object(dict[str, object]):
    """A JSON object that remembers the first key that stands in it twice."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__()
        self.repeated: str | None = None
        for key, value in pairs:
            if key in self and self.repeated is None:
                self.repeated = key
            self[key] = value


class _Source:
    """What the nodes of one document share: its name, short cuts for repeated numbers, and totals that are limited."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numbers: dict[str, Fraction] = {}
        self.spent: dict[str, int] = {}


_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:/([0-9]+)|(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?)")
"""Sign, whole digits, and then either a denominator or decimals and an exponent."""

_LARGEST = 10**MOST_DIGITS - 1

_REMEMBERED = 2**16
"""How many different numbers are kept for reuse while a document is read."""


def _parse(text: str, name: str) -> _Node:
    """The root of the document. Raises RequestError, with line and column, where `text` is not JSON."""
    if text.startswith("\ufeff"):
        raise RequestError("the file starts with a byte order mark", where=name, right="expected plain UTF-8")
    if not text.strip():
        raise RequestError("the file is empty", where=name, right=f'expected {{"format": "{FORMAT}", ...}}')
    try:
        document = json.loads(
            text, parse_int=_Integer, parse_float=_Number, parse_constant=_Number, object_pairs_hook=_Object
        )
    except json.JSONDecodeError as error:
        where = ": ".join(filter(None, (name, f"line {error.lineno}, column {error.colno}")))
        raise RequestError(f"not valid JSON: {error.msg}", where=where) from None
    except RecursionError:
        raise RequestError("nested too deeply", where=name, right="an instance needs 8 levels at most") from None
    return _Node(_Source(name), document)


class _Node:
    """A value of the document that knows its place; each method checks one thing and returns what it has checked."""

    __slots__ = ("_key", "_parent", "_source", "_value")

    def __init__(self, source: _Source, value: object, parent: _Node | None = None, key: str | int = "") -> None:
        self._source, self._value, self._parent, self._key = source, value, parent, key

    @property
    def path(self) -> str:
        """The place inside the document, such as `layers[0].heads[1].WQ`; empty for the whole."""
        before = self._parent.path if self._parent else ""
        if isinstance(self._key, int):
            return f"{before}[{self._key}]"
        return f"{before}.{self._key}" if before else self._key

    def wrong(self, what: str, right: str) -> RequestError:
        """The error to raise about this value."""
        return RequestError(what, where=": ".join(filter(None, (self._source.name, self.path))), right=right)

    def spend(self, total: str, amount: int, most: int) -> None:
        """Adds `amount` to a total of the whole document that may be `most`."""
        self._source.spent[total] = self._source.spent.get(total, 0) + amount
        if self._source.spent[total] > most:
            raise self.wrong(f"{total} add up to more than {most}", f"expected at most {most} in the whole file")

    # objects

    @property
    def is_object(self) -> bool:
        """Whether this is an object."""
        return isinstance(self._value, _Object)

    def _object(self) -> _Object:
        if not isinstance(self._value, _Object):
            raise self.wrong(_described(self._value), "expected an object")
        return self._value

    def member(self, key: str) -> _Node:
        """The value of a key that must be there."""
        value = self._object()
        if key not in value:
            raise self.wrong(f"the key {key} is missing", f"expected {key}")
        return _Node(self._source, value[key], self, key)

    def members(self, *, required: Collection[str] = (), optional: Collection[str] = ()) -> dict[str, _Node]:
        """The values of the keys that are there, in the order of the arguments; no other key may be, and none twice."""
        value, known = self._object(), (*required, *optional)
        if value.repeated is not None:
            raise self.wrong(f"the key {_quoted(value.repeated)} stands here twice", "expected each key once")
        for key in value:
            if key not in known:
                raise self.wrong(f"unknown key {_quoted(key)}", f"known here: {', '.join(known)}")
        return {key: self.member(key) for key in known if key in value or key in required}

    # arrays

    @property
    def is_array(self) -> bool:
        """Whether this is an array."""
        return isinstance(self._value, list)

    def _array(self, noun: str, least: int, most: int | None) -> list[object]:
        if not isinstance(self._value, list):
            raise self.wrong(_described(self._value), f"expected an array of {noun}s")
        if not _within(len(self._value), least, most):
            raise self.wrong(_counted(len(self._value), noun), f"expected {_range(least, most)}")
        return self._value

    def count(self, noun: str, least: int = 1, most: int | None = None) -> int:
        """The length of an array that holds between `least` and `most` things called `noun`."""
        return len(self._array(noun, least, most))

    def items(self, noun: str, least: int = 1, most: int | None = None) -> list[_Node]:
        """The values in an array that holds between `least` and `most` things called `noun`."""
        return [_Node(self._source, value, self, i) for i, value in enumerate(self._array(noun, least, most))]

    def numbers(self, width: int) -> tuple[Fraction, ...]:
        """An array of `width` numbers."""
        return tuple(item.number() for item in self.items("number", width, width))

    def rows(self, height: int, width: int) -> Rows:
        """An array of `height` rows of `width` numbers."""
        return tuple(row.numbers(width) for row in self.items("row", height, height))

    def matrix(self, height: int, width: int) -> RationalMatrix:
        """An array of `height` rows of `width` numbers, as a matrix."""
        return RationalMatrix(self.rows(height, width), width)

    def matrix_width(self, N: int) -> int:
        """The length of the first row, if N tokens of that width are not too many entries."""
        first = _Node(self._source, self._array("row", 1, None)[0], self, 0)
        width = first.count("number")
        if N * width > MOST_ENTRIES:
            raise self.wrong(
                f"{_counted(N, 'token')} of {_counted(width, 'column')} make {N * width} entries",
                f"expected at most {MOST_ENTRIES}",
            )
        return width

    # single values

    def boolean(self) -> bool:
        """true or false."""
        if not isinstance(self._value, bool):
            raise self.wrong(_described(self._value), "expected true or false")
        return self._value

    def choice(self, known: Mapping[str, Choice], otherwise: str = "") -> Choice:
        """What the string stands for; `otherwise` tells what else the caller would have taken."""
        if isinstance(self._value, str) and not isinstance(self._value, _Number) and self._value in known:
            return known[self._value]
        expected = [f'"{name}"' for name in known] + ([otherwise] if otherwise else [])
        raise self.wrong(_described(self._value), f"expected {' or '.join(expected)}")

    def integer(self, least: int, most: int | None = None) -> int:
        """A JSON integer between `least` and `most`."""
        value = int(self.number()) if isinstance(self._value, _Integer) else None
        if value is None or not _within(value, least, most):
            raise self.wrong(_described(self._value), f"expected an integer, {_range(least, most)}")
        return value

    def number(self) -> Fraction:
        """The exact value of an integer, a decimal or a string, which is built only once its size is known."""
        text = self._value
        if not isinstance(text, str):
            raise self._no_number()
        if (seen := self._source.numbers.get(text)) is not None:
            return seen
        if not (parts := _NUMBER.fullmatch(text)):
            raise self._no_number()
        sign, whole, denominator, decimals, exponent = parts.groups(default="")
        for digits in (whole + decimals, denominator):
            if len(digits) > MOST_DIGITS:
                raise self._too_long(f"{_described(text)} has {len(digits)} digits")
        if denominator and not denominator.strip("0"):
            raise self.wrong(f"{_described(text)} has a zero denominator", "expected a denominator of at least 1")
        value = Fraction(int(sign + whole + decimals), int(denominator or "1"))
        if power := self._exponent(exponent) - len(decimals):
            value *= Fraction(10) ** power
        if max(abs(value.numerator), value.denominator) > _LARGEST:
            raise self._too_long(f"{_described(text)} is too long when written as a fraction")
        if not exponent and len(self._source.numbers) < _REMEMBERED:
            self._source.numbers[text] = value
        return value

    def _exponent(self, written: str) -> int:
        digits = written.lstrip("+-").lstrip("0") or "0"
        if len(digits) > len(str(MOST_EXPONENT)) or int(digits) > MOST_EXPONENT:
            what = f"{_described(self._value)} has too large an exponent"
            raise self.wrong(what, f"expected at most {MOST_EXPONENT} in size")
        self.spend("the exponents of all numbers", int(digits), MOST_EXPONENTS)
        return -int(digits) if written.startswith("-") else int(digits)

    def _no_number(self) -> RequestError:
        return self.wrong(_described(self._value), 'expected a number: an integer, a decimal, or a string "p/q"')

    def _too_long(self, what: str) -> RequestError:
        return self.wrong(what, f"expected at most {MOST_DIGITS} digits above and below the line")


# --- words for errors ------------------------------------------------------------------------------------------------


def _within(value: int, least: int, most: int | None) -> bool:
    return least <= value and (most is None or value <= most)


def _range(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least}"
    return str(most) if least == most else f"between {least} and {most}"


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _quoted(text: str) -> str:
    return _shortened(repr(text[:61]))


def _one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _described(value: object) -> str:
    """The value in a few printable words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _Number():
            return f"the number {_shortened(value)}"
        case str():
            return f"the string {_quoted(value)}"
        case list():
            return f"an array of {_counted(len(value), 'value')}"
        case _:
            return "an object"
