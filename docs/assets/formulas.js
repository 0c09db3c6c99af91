for (const node of document.querySelectorAll(".arithmatex")) {
  const text = node.textContent.trim()
  const options = { displayMode: text.startsWith("\\["), throwOnError: false }
  katex.render(text.slice(2, -2), node, options)
}
