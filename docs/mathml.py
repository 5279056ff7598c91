"""Formulas as MathML, which browsers draw by themselves: no script is fetched by a reader.

docutils converts the TeX; a formula that it doesn't understand is a warning with its place.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

__all__ = ["setup"]

logger = logging.getLogger(__name__)


def convert(tex, node, as_block):
    """MathML of a formula, or its TeX as code where docutils can't read it."""
    try:
        return tex2mathml(tex, as_block=as_block)
    except (IndexError, MathError) as error:  # IndexError: a power without a base
        logger.warning("formula %r: %s", tex, error, location=node)
        return f"<code>{nodes.unescape(tex)}</code>"


def visit_inline(writer, node):
    writer.body.append(convert(node.astext(), node, as_block=False))
    raise nodes.SkipNode


def visit_block(writer, node):
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    if node.get("number"):
        writer.body.append(f'<span class="eqno">({node["number"]})</span>')
    writer.body.append(convert(node.astext(), node, as_block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
