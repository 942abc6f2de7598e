"use strict"
// Everything that is shown is put in as text, never as markup. The key stays in this variable, and goes to this origin only.
let key = "", session = {}
const MOST_CHARS = 200000
const place = document.getElementById("document"), told = document.getElementById("told")

const make = (name, attributes, ...children) => {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value)
  made.append(...children)
  return made
}
const folded = (attributes, summary, ...children) => make("details", attributes, make("summary", {}, ...summary), ...children)
const keyed = (headers) => key ? {...headers, authorization: "Bearer " + key} : {...headers, ...session}
const pretty = (value) => JSON.stringify(value, null, 2)

// What a schema says, in words with links to what it refers to.
const nameOf = (reference) => reference.split("/").pop()
const linked = (reference) => make("a", {href: "#schema-" + nameOf(reference)}, nameOf(reference))
const joined = (parts, between) => parts.flatMap((part, n) => n ? [between, ...part] : part)
const words = (schema) => {
  if (schema === true || schema === undefined) return ["anything"]
  if (schema.$ref) return [linked(schema.$ref)]
  if ("const" in schema) return [JSON.stringify(schema.const)]
  if (schema.enum) return [schema.enum.map((one) => JSON.stringify(one)).join(" | ")]
  const either = schema.anyOf || schema.oneOf
  if (either) return joined(either.map(words), " | ")
  if (schema.allOf) return joined(schema.allOf.map(words), " & ")
  if (schema.type === "array") return ["list of ", ...words(schema.items)]
  if (schema.type === "object" && schema.additionalProperties) return ["object of ", ...words(schema.additionalProperties)]
  return [[].concat(schema.type || "anything").join(" | ")]
}
const LIMITS = ["minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "default"]
const limits = (schema) => LIMITS.filter((name) => name in schema).map((name) => name + " " + JSON.stringify(schema[name]))
const row = (name, schema, required, description) => make("tr", {},
  make("td", {}, make("code", {}, name), required ? "" : make("span", {class: "soft"}, " optional")),
  make("td", {}, ...words(schema)),
  make("td", {}, [description || schema.description || "", ...limits(schema)].filter(Boolean).join("; ")))
const fields = (schema) => make("table", {}, ...Object.entries(schema.properties || {}).map(
  ([name, one]) => row(name, one, (schema.required || []).includes(name))))
const raw = (schema) => folded({}, ["JSON Schema"], make("pre", {}, pretty(schema)))

const content = (found) => Object.entries((found && found.content) || {}).map(
  ([media, one]) => make("p", {}, make("code", {}, media), ": ", ...words(one.schema),
    one.schema && one.schema.description ? ". " + one.schema.description : ""))

// Sending a request from here.
const sent = async (method, path, operation, form, shown) => {
  const given = new FormData(form), query = new URLSearchParams(), headers = {}
  for (const parameter of operation.parameters || []) {
    const value = given.get(parameter.in + " " + parameter.name)
    if (parameter.in === "path") path = path.replace("{" + parameter.name + "}", encodeURIComponent(value))
    else if (value && parameter.in === "query") query.append(parameter.name, value)
    else if (value) headers[parameter.name] = value
  }
  const body = given.get("body") || undefined
  if (body) headers["content-type"] = given.get("media")
  shown.textContent = "..."
  try {
    const answer = await fetch(path + (query.size ? "?" + query : ""), {method, headers: keyed(headers), body})
    shown.textContent = answer.status + " " + answer.statusText + "\n"
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      shown.append(part.value)
      if (shown.textContent.length > MOST_CHARS) { shown.append("\n... and more"); await reader.cancel() }
    }
  } catch (error) { shown.append("\nno answer: " + error.message) }
}
const asking = (method, path, operation) => {
  const inputs = (operation.parameters || []).map((one) => make("label", {}, one.name + " ",
    make("input", {name: one.in + " " + one.name, value: one.in === "path" && (one.schema.examples || [])[0] || ""})))
  const taken = Object.entries((operation.requestBody || {}).content || {})
  const example = taken.map(([, one]) => one.example).find((one) => one !== undefined)
  const body = taken.length ? [make("input", {name: "media", value: taken[0][0], "aria-label": "media type"}),
    make("textarea", {name: "body", spellcheck: "false", "aria-label": "body"}, example === undefined ? "" : pretty(example))] : []
  const shown = make("pre", {}), form = make("form", {}, ...inputs, ...body, make("button", {}, "Send"))
  form.addEventListener("submit", (event) => { event.preventDefault(); sent(method, path, operation, form, shown) })
  return folded({}, ["Send a request"], form, shown)
}

const route = (path, method, operation) => folded({id: "route-" + operation.operationId},
  [make("span", {class: "method"}, method.toUpperCase()), make("span", {class: "path"}, path), " ",
    make("span", {class: "soft"}, operation.summary || "")],
  make("p", {}, operation.description || ""),
  make("table", {}, ...(operation.parameters || []).map((one) => row(one.name + " (" + one.in + ")", one.schema, one.required, one.description))),
  ...(operation.requestBody ? [make("h4", {}, "Takes"), ...content(operation.requestBody)] : []),
  make("h4", {}, "Gives"),
  ...Object.entries(operation.responses).map(([status, one]) => folded({}, [status + " " + one.description], ...content(one))),
  asking(method.toUpperCase(), path, operation))

const show = (contract) => {
  const routes = Object.entries(contract.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => route(path, method, operation)))
  const schemas = Object.entries(contract.components.schemas).map(([name, schema]) => folded({id: "schema-" + name},
    [make("code", {}, name)], make("p", {}, schema.description || ""), make("p", {}, ...words(schema)), fields(schema), raw(schema)))
  place.replaceChildren(make("p", {}, contract.info.description || ""),
    make("h2", {}, "Routes"), ...routes, make("h2", {}, "Schemas"), ...schemas)
  told.replaceChildren("version " + contract.info.version + ", " + routes.length + " routes; the contract itself is at ",
    make("code", {}, "/openapi.json"))
  opened()
}
// Somebody who is signed in to the pages needs no key: what their forms show is shown here too.
const signIn = async () => {
  const answer = await fetch("sign-in/session")
  const found = answer.ok ? await answer.json() : {}
  if (found.token) session = {[found.header]: found.token}
  return Boolean(found.token)
}
const load = async () => {
  try {
    const answer = await fetch("openapi.json", {headers: keyed({})})
    if (answer.ok) return show(await answer.json())
    if (answer.status === 401 && !key && !Object.keys(session).length && await signIn()) return load()
    const problem = await answer.json()
    told.textContent = answer.status === 401 && !key ? "Enter a key to see the routes." : answer.status + ": " + problem.detail
  } catch (error) { told.textContent = "no answer: " + error.message }
  place.replaceChildren()
}
const opened = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView() }
}
addEventListener("hashchange", opened)
document.getElementById("key").addEventListener("submit", (event) => {
  event.preventDefault()
  key = new FormData(event.target).get("key").trim()
  load()
})
load()
