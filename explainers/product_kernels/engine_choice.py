"""Which engine computes the integrals, where, and in which precision."""

from typing import NamedTuple

__all__ = ["COMPILED", "Engine", "refuse_engine", "resolve_engine"]


class Engine(NamedTuple):
    """An engine, and for "torch" its device and precision."""

    name: str = "numba"
    device: str = "cpu"
    dtype: str = "float64"

    def tolerance(self, tol: float) -> float:
        """Return the quadrature's tolerance, at least 1e-6 in single precision."""
        return max(tol, 1e-6) if self.dtype == "float32" else tol


#: The engine that works everywhere.
COMPILED = Engine()


def resolve_engine(backend: str, device: str, dtype: str, method: str = "quadrature") -> Engine:
    """Choose the engine; refuse a device or precision that the chosen one doesn't have.

    Parameters
    ----------
    backend : {"auto", "numba", "numpy", "torch"}
        What was asked for. "auto" is "numba", or "torch" where `device` or `dtype` need it.
    device, dtype : str
        Torch device and precision.
    method : {"quadrature", "esp"}, default="quadrature"
        Algorithm; "esp" has a compiled form alone.

    Returns
    -------
    Engine
        The engine.

    Raises
    ------
    ValueError
        If the device isn't there, or the engine doesn't have the device, precision or method.
    """
    needs_torch = device != "cpu" or dtype != "float64"
    if method == "esp" and backend not in ("auto", "numba"):
        raise ValueError(f"backend={backend!r} isn't for method='esp'; allowed: 'auto', 'numba'")
    if needs_torch and (backend not in ("auto", "torch") or method != "quadrature"):
        raise ValueError(
            f"device={device!r} and dtype={dtype!r} are for backend='torch' and "
            f"method='quadrature', got {backend!r} and {method!r}"
        )
    if backend == "torch" or needs_torch:
        from equipoise.devices import resolve_device

        resolve_device(device)
        return Engine("torch", device, dtype)
    return Engine("numba" if backend == "auto" else backend)


def refuse_engine(what: str, backend: str, device: str, dtype: str) -> None:
    """Raise where an engine is asked for that something computed in NumPy doesn't have."""
    if backend not in ("auto", "numpy") or device != "cpu" or dtype != "float64":
        raise ValueError(
            f"{what} is computed in NumPy alone, got backend={backend!r}, device={device!r}, "
            f"dtype={dtype!r}; allowed: backend='auto' or 'numpy'"
        )
