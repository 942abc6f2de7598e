// Finds the packages of a script in its environment: INTEROP_NPM is the folder with its node_modules.
import { register } from "node:module";
import { pathToFileURL } from "node:url";

const base = pathToFileURL(`${process.env.INTEROP_NPM}/`).href;
const hooks = `export const resolve = (name, context, next) =>
  next(name, /^[./]|^node:|^file:/.test(name) || !context.parentURL.includes("/tests/interop/")
    ? context : { ...context, parentURL: ${JSON.stringify(base)} });`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
