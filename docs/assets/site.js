for (const node of document.querySelectorAll(".arithmatex")) {
  const text = node.textContent.trim()
  const options = { displayMode: text.startsWith("\\["), throwOnError: false }
  katex.render(text.slice(2, -2), node, options)
}

document.querySelector(".md-search")?.setAttribute("aria-label", "search")

// what scrolls sideways can be reached by keys
const reachable = () => {
  for (const node of document.querySelectorAll(".md-typeset__scrollwrap, .katex-display, .output, pre > code")) {
    if (node.scrollWidth > node.clientWidth) node.tabIndex = 0
  }
}
addEventListener("load", reachable)
addEventListener("resize", reachable)
