"""Pages for people: server-rendered, one stylesheet, one small script, no build step.

To add a page: one module in `service/web/pages` with `PAGES = PageSet(build_..., nav=NavLink(...))`; `build_...` takes
the `ApiParts` and returns routes made by `page(path, handler, needs=scope)`. A handler takes the request and returns
`render(request, "name.html", twin="/v1/...", **values)`; the template extends `base.html`. A page that changes
something is a route with `method="POST"`: its form holds `{{ csrf_field() }}`, which is checked before the handler
runs, and `read_form(request)` returns the fields. A form that holds a trace or a fit needs a page with `carries_body`;
any other form is small. Nothing is inline: no style or script in a template, no `style=`, no `on...=`.
"""
