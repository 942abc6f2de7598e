// Keys and lights of the page of a trace, which works without. It reads attributes that our templates alone write: ids, numbers.
"use strict"

const linked = new Map()
for (const one of document.querySelectorAll("[data-links]")) {
  for (const name of one.dataset.links.split(" ")) linked.set(name, [...(linked.get(name) ?? []), one])
}

// What shares a number with the element under the pointer, or with the one that has the focus, lights up.
const light = (event) => {
  document.querySelectorAll(".lit").forEach((one) => { one.classList.remove("lit") })
  const names = event.target.closest?.("[data-links]")?.dataset.links.split(" ") ?? []
  for (const name of names) linked.get(name).forEach((one) => { one.classList.add("lit") })
}
document.addEventListener("mouseover", light)
document.addEventListener("focusin", light)

const show = (one) => {
  for (let around = one.parentElement; around; around = around.parentElement) {
    if (around.tagName === "DETAILS") around.open = true
  }
  one.scrollIntoView({ block: "start" })
  const place = one.tagName === "DETAILS" ? one.querySelector("summary") : one
  place.focus({ preventScroll: true })
}

// What a link leads to is opened, wherever it is folded.
const reveal = (hash) => {
  const one = hash && document.getElementById(hash.slice(1))
  if (!one) return
  if (one.tagName === "DETAILS") one.open = true
  show(one)
}
addEventListener("hashchange", () => reveal(location.hash))
reveal(location.hash)

const visible = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility())

// The next or previous of some elements, from where the reader is: the one that has the focus, else the top of the window.
const go = (selector, step) => {
  const all = visible(selector)
  const here = document.activeElement?.closest(selector)
  const at = here ? all.indexOf(here) : all.findLastIndex((one) => one.getBoundingClientRect().top < 1)
  const next = all[here ? at + step : Math.max(0, step > 0 ? at + 1 : at)]
  if (next) show(next)
}

// A whole trace: another page where links lead to one, else the next of those on this page.
const turn = (name, step) => {
  const link = document.querySelector(`a[rel=${name}]`)
  if (link) return link.click()
  const all = visible("details.run")
  const here = document.activeElement?.closest("details.run")
  const next = all[all.indexOf(here) + step]
  if (!next) return
  if (here) here.open = false
  next.open = true
  show(next)
}

const toggle = () => {
  const one = document.activeElement?.closest("details")
  if (one) one.open = !one.open
}

const breakpoint = () => {
  const around = document.activeElement?.closest("details.run[open]") ?? document.querySelector("details.run[open]") ?? document
  reveal(around.querySelector("[data-first]")?.hash)
}

const help = document.getElementById("keys")
const keys = {
  j: () => go("[data-stop]", 1),
  k: () => go("[data-stop]", -1),
  "[": () => turn("prev", -1),
  "]": () => turn("next", 1),
  f: breakpoint,
  n: () => go("[data-stop].fail", 1),
  p: () => go("[data-stop].fail", -1),
  o: toggle,
  "?": () => { help.open ? help.close() : help.showModal() },
}
if (help) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return
    if (Object.hasOwn(keys, event.key) && (!help.open || event.key === "?")) {
      event.preventDefault()
      keys[event.key]()
    }
  })
  for (const one of document.querySelectorAll("[data-keys]")) {
    one.addEventListener("click", () => help.showModal())
  }
}
