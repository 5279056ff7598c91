"""Systems in ``.npz`` files, without pickles: fractions are written as text."""

from collections.abc import Mapping
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["PARTS", "read_archive", "write_archive"]

#: What a system is made of: the arguments of its constructor.
PARTS = ("A", "b", "indptr", "op", "names", "A_exact", "b_exact")
#: Parts that may be absent, held as text.
TEXTS = {"names": str, "A_exact": Fraction, "b_exact": Fraction}


def write_archive(path: str | PathLike[str], parts: Mapping[str, Any]) -> None:
    """Write the parts of a system, as its constructor takes them.

    Parameters
    ----------
    path : path
        File to write.
    parts : mapping
        A (csr), b, indptr, op, and names, A_exact, b_exact or None.
    """
    A = parts["A"]
    arrays: dict[str, Any] = {key: parts[key] for key in ("b", "indptr", "op")}
    arrays |= {
        key: np.array([str(value) for value in parts[key]], dtype=str)
        for key in TEXTS
        if parts[key] is not None
    }
    np.savez_compressed(path, data=A.data, indices=A.indices, rows=A.indptr, **arrays)


def read_archive(path: str | PathLike[str]) -> dict[str, Any]:
    """Read what `write_archive` wrote: the constructor's arguments."""
    with np.load(path, allow_pickle=False) as file:
        shape = (len(file["b"]), len(file["op"]))
        parts: dict[str, Any] = {key: file[key] for key in ("b", "indptr", "op")}
        parts["A"] = sp.csr_array((file["data"], file["indices"], file["rows"]), shape=shape)
        for key, kind in TEXTS.items():
            if key in file:
                parts[key] = [kind(str(value)) for value in file[key]]
        return parts
