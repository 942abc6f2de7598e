// What is wrong with how the page that is open looks, as a list of texts; empty if nothing is.
() => {
  const found = []
  const root = document.documentElement
  const describe = (one) => `${one.tagName.toLowerCase()}.${one.className} "${one.textContent.trim().slice(0, 40)}"`
  const shown = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 1
  const all = [...document.body.querySelectorAll("*")].filter(shown)

  if (root.scrollWidth > root.clientWidth) found.push(`the page is ${root.scrollWidth} wide`)

  // Cut: a box that hides what does not fit, without an ellipsis that says so.
  for (const one of all) {
    const style = getComputedStyle(one)
    const hides = [style.overflowX, style.overflowY].some((value) => ["hidden", "clip"].includes(value))
    const says = style.textOverflow === "ellipsis" || style.webkitLineClamp !== "none" || one.matches(".hidden, svg")
    const over = one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1
    if (hides && !says && over) found.push(`cut: ${describe(one)}`)
  }

  // Boxes: lines of text and controls. Two of them that share more than a little are on top of each other. A line counts
  // by its middle, for the boxes of lines touch. What floats above the page or scrolls by itself does not count.
  const floats = (one) => one && (["fixed", "sticky"].includes(getComputedStyle(one).position)
    || (one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY === "auto") || floats(one.parentElement))
  const clips = (one) => one && (getComputedStyle(one).overflowX === "hidden" ? one : clips(one.parentElement))
  const boxes = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement
    if (!node.data.trim() || !shown(parent) || parent.closest("sup, .hidden, .skip, select, textarea, script") || floats(parent)) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    const lines = [...range.getClientRects()]
    if (!parent.closest("pre, mark") && /^\S{1,16}$/.test(node.data.trim()) && lines.some((box) => box.top > lines[0].bottom - 1)) found.push(`a broken word: ${describe(parent)}`)
    for (const box of lines) {
      const middle = box.height / 4, window = clips(parent)?.getBoundingClientRect() ?? box
      const left = Math.max(box.left, window.left), right = Math.min(box.right, window.right)
      const top = Math.max(box.top + middle, window.top), bottom = Math.min(box.bottom - middle, window.bottom)
      if (left < right && top < bottom) boxes.push({ one: parent, left, right, top, bottom })
    }
  }
  for (const one of all.filter((one) => one.matches("input:not([type=hidden]), textarea, select, .bar, progress") && !floats(one))) {
    const { left, right, top, bottom } = one.getBoundingClientRect()
    boxes.push({ one, left, right, top, bottom })
  }
  boxes.sort((one, other) => one.top - other.top)
  for (const [n, one] of boxes.entries()) {
    if (one.right > root.clientWidth + 1 && !one.one.closest(".wide, pre")) found.push(`beyond the edge: ${describe(one.one)}`)
    for (let at = n + 1; at < boxes.length && boxes[at].top < one.bottom; at++) {
      const other = boxes[at]
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left)
      if (one.one !== other.one && across > 2 && Math.min(one.bottom, other.bottom) - other.top > 2) {
        found.push(`on top of each other: ${describe(one.one)} and ${describe(other.one)}`)
      }
    }
  }

  const first = document.querySelector("[data-first]")
  if (first && scrollY === 0 && first.getBoundingClientRect().bottom > innerHeight) found.push("the first failure is below the fold")
  return [...new Set(found)].slice(0, 10)
}
