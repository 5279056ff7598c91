"""What happens to docstrings between numpydoc and reStructuredText, as Sphinx events."""

import re

__all__ = ["escape_mathematics", "skip_metadata_requests"]

#: Literals and roles, kept as they are; bars; words that end in an underscore.
MATHEMATICS = re.compile(r"(``.*?``|`[^`]*`_?)|(\|)|(?<=\w)(_)(?!\w)")


def escape_mathematics(app, what, name, obj, options, lines):
    """Take ``|x - y|`` and ``(n_features_in_,)`` for what they are: mathematics and names.

    reStructuredText sees a substitution and a link in them. Doctests and indented blocks after
    a double colon stay as they are.
    """
    in_doctest, block = False, None
    for i, line in enumerate(lines):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if block is not None and stripped and indent <= block:
            block = None
        in_doctest = bool(stripped) and (in_doctest or stripped.startswith(">>>"))
        if not in_doctest and block is None:
            lines[i] = MATHEMATICS.sub(lambda m: m[1] or "\\" + m[0], line)
        if stripped.endswith("::"):
            block = indent


def skip_metadata_requests(app, what, name, obj, skip, options):
    """``set_fit_request`` and its like are scikit-learn's, and documented there."""
    return True if re.fullmatch(r"set_\w+_request", name) else None
