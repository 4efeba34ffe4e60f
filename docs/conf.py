"""How the pages become a site. What they say is in the pages; `just docs` builds it."""

from importlib import metadata

project = "Tenure"
release = metadata.version("tenure")
extensions = ["myst_parser"]

html_theme = "furo"
html_title = f"Tenure {release}"
html_copy_source = False
html_show_copyright = False
highlight_language = "text"

# Links are plain Markdown, `page.md#heading`, so that they lead somewhere in a checkout too.
myst_heading_anchors = 3
