"""Systems in files: written and read as archives, and read from the models of PRISM and Storm."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

from .archive import PARTS, read_archive, write_archive
from .constructors import Constructors
from .drn_files import read_drn
from .prism_files import read_prism
from .reachability import compress_model

__all__ = ["Files"]


class Files(Constructors):
    """The ways of `LEMM` out of files, and into one."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the system to an ``.npz`` file, exact values included."""
        write_archive(path, {name: getattr(self, name) for name in PARTS})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        return cls(**read_archive(path))

    @classmethod
    def from_prism_explicit(
        cls,
        tra: str | PathLike[str],
        lab: str | PathLike[str] | None = None,
        srew: str | PathLike[str] | None = None,
        trew: str | PathLike[str] | None = None,
        players: Sequence[Any] | None = None,
        *,
        target: Any,
        sense: str = "max",
        sta: str | PathLike[str] | None = None,
    ) -> Self:
        """Read a chain, decision process or game from PRISM's explicit files.

        Without rewards a node's value is the chance of reaching the target, with them the reward
        collected until then.

        Parameters
        ----------
        tra : path
            Transitions (.tra).
        lab : path, optional
            Labels (.lab).
        srew, trew : path, optional
            Rewards of states and of transitions.
        players : sequence of 'max' or 'min', optional
            Who moves in each state; default everywhere `sense`.
        target : str, mask or array-like of int
            A label, or states.
        sense : {'max', 'min'}, default='max'
            Whether the chance or reward is made large or small.
        sta : path, optional
            Variables of the states (.sta), from which the nodes are named.

        Returns
        -------
        LEMM
            One node a state. For chances, a set of states in which the maximiser can stay for
            ever has its leaving choices in its first state, which the others equal.

        Raises
        ------
        ValueError
            With file, line and column, where a file can't be read.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from equipoise.games import LEMM
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "coin.tra"
        ...     _ = path.write_text("3 4\\n0 1 0.25\\n0 2 0.75\\n1 1 1\\n2 2 1\\n")
        ...     chain = LEMM.from_prism_explicit(path, target=[2])
        >>> chain.evaluate([0, 0, 0])
        array([0.75, 0.  , 1.  ])
        """
        model = read_prism(tra, lab, srew, trew, sta)
        return cls._of(compress_model(model, target, sense, players), model.names)

    @classmethod
    def from_drn(
        cls,
        path: str | PathLike[str],
        *,
        target: Any,
        reward: str | None = None,
        sense: str = "max",
        players: Sequence[Any] | None = None,
    ) -> Self:
        """Read a chain or decision process from a DRN file, as Storm writes it.

        Parameters
        ----------
        path : path
            The file; type DTMC or MDP.
        target, sense, players
            As in `from_prism_explicit`.
        reward : str, optional
            Reward model to collect until the target; None asks for the chance of reaching it.

        Returns
        -------
        LEMM
            One node a state, as in `from_prism_explicit`.

        Raises
        ------
        ValueError
            With line and column, where the file can't be read.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from equipoise.games import LEMM
        >>> text = '''@type: DTMC
        ... @nr_states
        ... 2
        ... @model
        ... state 0 init
        ... 0 : 0.5
        ... 1 : 0.5
        ... state 1 goal
        ... 1 : 1'''
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "coin.drn"
        ...     _ = path.write_text(text)
        ...     print(LEMM.from_drn(path, target="goal"))
        x1 = 0.5*x1 + 0.5*x2
        x2 = 1
        """
        model = read_drn(path, reward)
        return cls._of(compress_model(model, target, sense, players))
