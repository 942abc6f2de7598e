// Makes pages livelier that work without it. It acts on attributes that our templates alone write, and never on text of a trace.
"use strict"

// [data-live]: the address of events; each of them fetches the page anew, and swaps the parts that are marked [data-part].
const follow = (place) => {
  const events = new EventSource(place.dataset.live)
  let waiting = false, missed = false
  const refresh = async () => {
    missed = waiting
    if (waiting) return
    waiting = true
    await swap(location.href)
    setTimeout(() => { waiting = false; if (missed) refresh() }, 1000)
  }
  events.addEventListener("batch", (event) => {
    refresh()
    if (["completed", "failed", "cancelled", "expired"].includes(JSON.parse(event.data).status)) {
      events.close()
      setTimeout(() => swap(location.href), 1100)
    }
  })
}

const swap = async (address) => {
  const answer = await fetch(address, { credentials: "same-origin" })
  if (!answer.ok) return
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html")
  for (const part of document.querySelectorAll("[data-part]")) {
    const other = fresh.querySelector(`[data-part="${CSS.escape(part.dataset.part)}"]`)
    if (other && other.innerHTML !== part.innerHTML) part.replaceWith(document.adoptNode(other))
  }
}

document.querySelectorAll("[data-live]").forEach(follow)

// input[data-into]: a file that is chosen becomes the text of the field with that id.
document.querySelectorAll("input[data-into]").forEach((input) => {
  input.addEventListener("change", async () => {
    if (input.files[0]) document.getElementById(input.dataset.into).value = await input.files[0].text()
  })
})
