// Keys for a page that works without them: [data-press] is a button that a key presses, [data-focus] a field that it goes to;
// what is marked on the page is put into a field with [data-takes-marked].
"use strict"

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur()
    return
  }
  for (const one of document.querySelectorAll("[data-press], [data-focus]")) {
    if (one.dataset.press === event.key) { event.preventDefault(); one.click(); return }
    if (one.dataset.focus !== event.key) continue
    event.preventDefault()
    const marked = "takesMarked" in one.dataset ? getSelection().toString().trim() : ""
    if (marked) one.value = marked.slice(0, one.maxLength)
    one.focus()
    return
  }
})
